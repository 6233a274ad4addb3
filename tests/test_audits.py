"""Audits against what SciPy and plain NumPy say of the same PITs, and the text that people read.

The forecaster under audit is a stub whose randomized forecasts are normal again, so that all its
scores are known: through the Gaussian link `H(u; r) = Phi(s Phi^-1(u) + rho Phi^-1(r))`, `s =
sqrt(1 - rho^2)`, Normal(a, b) becomes Normal(a - b rho Phi^-1(r) / s, b / s).
"""

import hashlib
import json
import platform
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy
import scoringrules
import sklearn
from scipy import special, stats

import evenhand
from complaints import refused
from evenhand._validate import DiscreteOutcomeWarning, InputError
from evenhand.audits import Search, audit_pit, certify, compare, renumbered, with_sources
from evenhand.audits import audit as full_audit
from evenhand.calibration import Cells, calibration_curve, pathwise_errors
from evenhand.certificates import certify_link
from evenhand.certificates.parts import part_of_rows
from evenhand.distributions import Normal
from evenhand.draws import fresh, jittered, nodes
from evenhand.forecast import Forecast
from evenhand.forecasters import ForecastColumns, RandomizedRegressor
from evenhand.links import Entropic, make_link
from evenhand.outcomes import Outcomes
from evenhand.report import NoteKind, note, notes_of
from parts_examples import searching
from quadrature import gaussian_link
from repeats import repeats, statistical

N = 400
STD = 1.5
MASSES = (0.2, 0.5, 1.0)
QUICK = {"search": Search(n_simulations=2, learned_masses=(), masses=MASSES)}


def randomized_normal(mean, r, rho):
    """Moments of Normal(mean, STD) behind the Gaussian link: means and deviations, (n, m)."""
    s = np.sqrt(1 - rho**2)
    loc = mean[:, None] - STD * rho * special.ndtri(r) / s
    return loc, np.full(loc.shape, STD / s)


class Stub:
    """A fitted Normal(first column, STD), randomized if `rho` is given; records its draws."""

    def __init__(self, rho=None, by_link=False):
        self.rho, self.by_link = rho, by_link
        self.draws = []

    def forecast(self, X, r):
        self.draws.append(r)
        mean = np.asarray(X)[:, 0].astype(float)
        base = Forecast.from_normal(mean, np.full(mean.size, STD))
        if self.rho is None:
            return base
        if self.by_link:
            return base.randomized(link=gaussian_link(self.rho), r=r)
        return Forecast(Normal(*randomized_normal(mean, r, self.rho)), r)


def audit(*args, **kwargs):
    """Audit with few simulations and no learner: both take long and are tested elsewhere."""
    return full_audit(*args, **(QUICK | kwargs))


def quick_pits(*args, **kwargs):
    return audit_pit(*args, **(QUICK | {"random_state": 0} | kwargs))


def table(n=N, seed=0):
    """Return features and outcomes; people of the north earn more than the stub forecasts."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"score": rng.normal(size=n), "region": rng.choice(["north", "south"], size=n)}
    )
    bias = np.where(X["region"] == "north", 0.8, 0.0)
    return X, (X["score"] + bias + STD * rng.normal(size=n)).to_numpy()


def flat(n, std=1.0):
    return Forecast.from_normal(np.zeros(n), np.full(n, std))


def w1(values):
    """W1 to uniform from SciPy, on a grid that is 1 / 400 000 from uniform."""
    return float(stats.wasserstein_distance(values.ravel(), (np.arange(100_000) + 0.5) / 100_000))


def check_tables(found, X, y, pit, scores, rel):
    expected = scores | {
        f"{level:.0%} coverage": (np.abs(pit - 0.5) <= level / 2).mean(axis=1)
        for level in (0.8, 0.9)
    }
    measured = found.scores.set_index("measure")
    for measure, values in expected.items():
        row = measured.loc[measure]
        exact = 1e-9 if measure not in {"CRPS", "mean std"} else rel
        assert row["value"] == pytest.approx(values.mean(), rel=exact, abs=1e-12)
        assert found.score(measure) == row["value"]
        # sem divides by n - 1, the band by n
        error = stats.sem(values) * np.sqrt(1 - 1 / values.size)
        margin = stats.norm.ppf(0.975) * error
        if row["unit"] == "share":
            # Wilson's ends are the shares at which the one found is 1.96 standard errors away
            n = row["value"] * (1 - row["value"]) / error**2
            ends = np.array([row["low"], row["high"]])
            away = np.abs(ends - row["value"]) / np.sqrt(ends * (1 - ends) / n)
            np.testing.assert_allclose(away, stats.norm.ppf(0.975), rtol=1e-5)
            continue
        assert row["high"] - row["value"] == pytest.approx(margin, rel=max(rel, 1e-6), abs=1e-9)
        assert row["value"] - row["low"] == pytest.approx(margin, rel=max(rel, 1e-6), abs=1e-9)
    north = (X["region"] == "north").to_numpy()
    masks = {"everyone": north | ~north, "region = north": north, "region = south": ~north}
    for name, rows in masks.items():
        group = found.groups.set_index("group").loc[name]
        assert group["n"] == rows.sum()
        assert group["error"] == pytest.approx(w1(pit[rows]), abs=3e-6)
        assert 0 <= group["error_low"] <= group["error"] <= group["error_high"] <= 0.5
        assert group["mean_pit"] == pytest.approx(pit[rows].mean(), abs=1e-12)
        # over draws the mean of a forecast is that of one outcome from each of 64 cells
        wanted = (y - X["score"])[rows].mean()
        assert group["bias"] == pytest.approx(wanted, abs=0.02 if pit.shape[1] > 1 else 1e-9)
        for level in (80, 90):
            share = (np.abs(pit[rows] - 0.5) <= level / 200).mean()
            assert group[f"coverage_{level}"] == pytest.approx(share, abs=1e-12)
            assert (
                0 <= group[f"coverage_{level}_low"] <= share <= group[f"coverage_{level}_high"] <= 1
            )
        assert not group["too_small"]
    assert found.score("average error") == pytest.approx(w1(pit), abs=3e-6)
    by_mean = pit[np.argsort(pit.mean(axis=1))]
    worst_first = np.sort(pathwise_errors(pit))[::-1]
    for mass, size, error, *_, certified in found.worst_groups.itertuples(index=False):
        k = int(np.ceil(mass * pit.shape[0] - 1e-9))
        assert size == k
        # at most the mean of the k largest pathwise errors (Jensen), at least the paper's groups
        assert (
            max(w1(by_mean[:k]), w1(by_mean[-k:])) - 3e-6 <= error <= worst_first[:k].mean() + 1e-12
        )
        assert error <= certified <= 0.5


@pytest.mark.parametrize("by_link", [True, False])
def test_an_audit_of_a_forecaster_agrees_with_its_normal_forecasts(by_link, monkeypatch):
    X, y = table()
    rho = 0.8
    model = Stub(rho, by_link)
    taken = []
    take_draws = Forecast.take_draws

    def spy(forecast, columns):
        some = take_draws(forecast, columns)
        taken.append(some.r)
        return some

    monkeypatch.setattr(Forecast, "take_draws", spy)
    found = audit(model, X, y, groups=["region"], random_state=0)
    assert (found.name, found.n_samples, found.n_draws) == ("Stub", N, 64)
    assert found.is_randomized
    assert found.rounding_step is None
    # one draw in each cell of each person; what needs few draws takes some of them
    draws = [*model.draws, *taken]
    assert [r.shape for r in draws] == [(N, 64), (N, 16)]
    for r in draws:
        cells = np.floor(r * r.shape[1])
        np.testing.assert_array_equal(cells, np.broadcast_to(np.arange(r.shape[1]), r.shape))
        assert np.unique(r).size == r.size
    assert np.isin(taken[0], model.draws[0]).all()
    wide, few = (stats.norm(*randomized_normal(X["score"].to_numpy(), r, rho)) for r in draws)
    std = STD / np.sqrt(1 - rho**2)
    scores = {
        "log score": -wide.logpdf(y[:, None]).mean(axis=1),
        "CRPS": scoringrules.crps_normal(y[:, None], few.mean(), few.std()).mean(axis=1),
        "mean std": np.full(N, std),
        "80% interval width": np.full(N, 2 * std * stats.norm.ppf(0.9)),
        "90% interval width": np.full(N, 2 * std * stats.norm.ppf(0.95)),
    }
    # sums over quantiles 1/16 apart in score: the trapezoid adds (1/16)^2 / 12 of the variance
    check_tables(found, X, y, wide.cdf(y[:, None]), scores, rel=1e-3 if by_link else 1e-9)


def test_weights_are_repetitions_in_estimates():
    X, y = table()
    counts = np.random.default_rng(1).integers(0, 4, size=N)
    repeats = np.repeat(np.arange(N), counts)
    weighted = audit(Stub(), X, Outcomes(y, weight=counts), groups=["region"], random_state=0)
    with warnings.catch_warnings(action="ignore", category=DiscreteOutcomeWarning):
        repeated = audit(Stub(), X.iloc[repeats], y[repeats], groups=["region"], random_state=0)
    for measure in weighted.scores["measure"]:
        assert weighted.score(measure) == pytest.approx(repeated.score(measure), rel=1e-9)
    for column in ("error", "mean_pit", "coverage_80", "coverage_90"):
        np.testing.assert_allclose(weighted.groups[column], repeated.groups[column], rtol=1e-9)
    # nothing that needs a sample of equal weights (verdict: 4)
    assert weighted.worst_groups.empty
    assert weighted.learned.empty
    assert weighted.certificate is None
    assert weighted.notes[:2] == (
        note(NoteKind.ZERO_WEIGHTS, numbers=(int(np.sum(counts == 0)),)),
        note(NoteKind.NO_THINNING),
    )


def test_weighted_rows_are_thinned_for_searches_and_certificates():
    """Rows are kept in proportion to their weights; what follows is that of the kept rows."""
    n = 4000
    X, y = table(n)
    weight = np.where(X["region"] == "north", 3.0, 1.0)

    def of_largest(largest):
        known = Outcomes(y, weight=weight, largest_weight=largest)
        return audit(
            Stub(),
            X,
            known,
            groups=["region"],
            search=Search(learned_masses=(0.5,)),
            random_state=0,
        )

    found = of_largest(4.0)
    (thinned,) = notes_of(found.notes, NoteKind.THINNED)
    n_kept, of, seed = map(int, thinned.numbers)
    north = X["region"].to_numpy() == "north"
    kept = np.random.default_rng(seed).random(n) < weight / 4
    assert (n_kept, of) == (kept.sum(), n)
    assert found.certificate.n_samples == n_kept
    assert np.isin(found.learned_rows["row"], np.flatnonzero(kept)).all()
    # a sample of the population, of which weights make the north 3 parts of 4: five s.e., 1e-6
    share = 3 * north.sum() / (3 * north.sum() + (~north).sum())
    assert kept[north].sum() / n_kept == pytest.approx(share, abs=5 * 0.5 / np.sqrt(n_kept))
    assert found.worst_groups["n"].iloc[-1] == n_kept
    few = of_largest(400.0)
    (left,) = notes_of(few.notes, NoteKind.FEW_AFTER_THINNING)
    assert left.numbers[0] == n
    assert left.numbers[1] < 150
    assert few.learned.empty
    assert few.certificate is None
    refused("largest_weight must be at least the largest weight", of_largest, 2.0)


def test_the_band_of_a_weighted_mean_is_that_of_resampled_people():
    X, y = table()
    rng = np.random.default_rng(2)
    weight = rng.exponential(size=N)
    row = (
        audit(Stub(), X, Outcomes(y, weight=weight), random_state=0)
        .scores.set_index("measure")
        .loc["log score"]
    )
    losses = -stats.norm(X["score"], STD).logpdf(y)
    rows = rng.integers(0, N, size=(4000, N))
    means = (losses[rows] * weight[rows]).sum(axis=1) / weight[rows].sum(axis=1)
    # a standard deviation of 4000 means has a standard error of 1.1%, as the linearization
    expected = stats.norm.ppf(0.975) * means.std()
    assert row["high"] - row["value"] == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("given_as", ["forecast", "pit", "persons"])
def test_all_parts_of_an_audit_see_the_rows_with_a_weight_and_no_others(given_as):
    X, y = table()
    weight = np.where(np.arange(N) < 250, 3.0, 0.0)
    forecast = Forecast.from_normal(X["score"], np.full(N, STD))
    # rows without a weight are off by a mile: any part that saw them would tell
    y = np.where(weight > 0, y, y + 40.0)
    search = Search(learned_masses=[0.5])
    options = {"search": search, "groups": {"odd": np.arange(N) % 2 == 1}, "random_state": 0}
    options = searching(options, min_size=60)
    if given_as == "pit":
        found = audit_pit(
            forecast.pit(y), X=X, sample_weight=weight, **searching(options, n_simulations=2)
        )
    elif given_as == "persons":
        known = Outcomes(y, weight=weight, person=np.arange(N) // 2)
        found = audit(forecast, y=known, features=X, **options)
    else:
        found = audit(forecast, X, Outcomes(y, weight=weight), **options)
    n = 125 if given_as == "persons" else 250
    assert found.n_samples == found.groups["n"].iloc[0] == found.worst_groups["n"].iloc[-1] == n
    assert found.notes[0] == note(NoteKind.ZERO_WEIGHTS, numbers=(N - 250,))
    assert not any("count each row once" in text for text in texts(found.notes))
    # the rows left weigh the same, so that they are a sample
    assert found.certificate.n_samples == n
    assert found.learned["n_judged"].iloc[0] <= n
    assert 60 <= found.scan["n"].max() <= n
    # PITs of planted rows are 1; the others deviate by half the planted bias at most
    (error,) = found.worst_groups.loc[found.worst_groups["mass"] == 1.0, "error"]
    assert error < 0.2


def test_mild_atoms_are_warned_about_and_spread_over_their_cells():
    # outcomes on a grid, 8% of them at the cap 0.85, and the forecast before rounding
    n = 5000
    y = np.minimum(np.random.default_rng(7).normal(0.5, 0.25, size=n).round(2), 0.85)
    truth = Forecast.from_normal(np.full(n, 0.5), np.full(n, 0.25))
    share = (y == 0.85).mean()
    with pytest.warns(DiscreteOutcomeWarning, match=f"^y is 0.85 in {share:.1%} of"):
        found = audit(truth, y=y, random_state=0)
    assert found.rounding_step == 0.01
    # spread PITs of the truth are exactly uniform. DKW bounds W1 too: a false alarm in 10^6
    assert found.score("average error") <= np.sqrt(np.log(2e6) / (2 * n))
    # piled up at the CDF of the cap, 0.92, these rows would all be covered: 0.95; five s.e.
    assert found.score("90% coverage") == pytest.approx(0.9, abs=5 * 0.3 / np.sqrt(n))
    assert (truth.pit(y) <= 0.95).mean() > 0.99
    # cells are scored; the cap is a bound, the smallest outcome is not
    low, high = y - 0.005, np.where(y == 0.85, np.inf, y + 0.005)
    peer = stats.norm(0.5, 0.25)
    expected = -np.log((peer.cdf(high) - peer.cdf(low)) / 0.01).mean()
    assert found.score("log score, cells of 0.01") == pytest.approx(expected, rel=1e-9)
    # and compared by their cells alone
    measures = compare(found, found.with_rows(name="other")).scores["measure"].tolist()
    assert "log score, cells of 0.01" in measures
    assert "log score" not in measures


def test_what_cannot_be_audited_is_refused_on_one_line():
    X, y = table()
    holed = np.where(np.arange(N) == 3, np.nan, y)
    refused("y is missing", audit, Stub(), X)
    refused("y is constant", audit, flat(N), y=np.full(N, 1.0))
    refused(r"y\[3\] .*finite.* nan", audit, Stub(), X, holed)
    refused("X is missing", audit, Stub(), None, y)
    refused(rf"y .*row of X \(50\).* {N} outcomes", audit, Stub(), X[:50], y)
    refused(rf"y .*per forecast \(50\).* {N} outcomes", audit, flat(50), y=y)
    refused("model .*Forecast.* object; ", audit, object(), X, y)
    refused("y is missing", certify, Stub(0.8), X)
    endless = X.assign(score=np.where(np.arange(N) == 6, np.inf, X["score"]))
    facts = "column 'score', row 7 must lie between .* got inf"
    refused(facts, audit, flat(N), endless, y)
    refused(facts, audit_pit, np.full(N, 0.5), X=endless)
    weighted = Outcomes(y, weight=1 + np.arange(N) % 2)
    pattern = "certificates do not accept weights alone: .*largest_weight="
    refused(pattern, certify, Stub(), X, weighted)
    found = audit(Stub(), X, y, random_state=0)
    refused(r"measure .*'log score', 'CRPS', .* 'crps'", found.score, "crps")


def test_json_holds_what_the_tables_hold(tmp_path):
    X, y = table()
    one = np.arange(N) == 0
    found = audit(
        Stub(0.8), X, y, groups={"größer": ~one, "one": one}, random_state=0, name="naïve"
    )
    held = found.to_dict()
    assert json.loads(found.to_json()) == held
    path = tmp_path / "audit.json"
    assert found.to_json(path) == found.to_json()
    assert json.loads(path.read_text(encoding="utf-8")) == held
    tables = {"scores": found.scores, "groups": found.groups, "pit": found.histogram}
    tables |= {"worst_groups": found.worst_groups, "scan": found.scan}
    for key, table_of_rows in tables.items():
        # every digit; what is unknown or false is left out
        for plain, row in zip(held[key], table_of_rows.to_dict("records"), strict=True):
            known = {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in row.items()
                if not (value is None or value is False or str(value) in {"nan", "()"})
            }
            assert plain == known
    proof = found.certificate
    assert held["certificate"]["average_error"] == proof.average_error()
    assert held["certificate"]["every_group"][1]["group_error"] == proof.group_error(0.2)
    json.dumps(held, allow_nan=False)


@pytest.mark.parametrize(("n", "n_bins"), [(499, 10), (500, 20)])
def test_the_histogram_is_that_of_numpy(n, n_bins):
    rng = np.random.default_rng(0)
    pit, weight = rng.beta(2, 3, size=(n, 3)), rng.integers(1, 4, size=n)
    pit[0] = [0.0, 1.0, 0.5]
    held = quick_pits(pit, r=rng.uniform(size=pit.shape), sample_weight=weight).histogram
    expected, edges = np.histogram(pit, n_bins, (0, 1), weights=np.tile(weight[:, None], 3))
    np.testing.assert_allclose([*held["start"], held["end"].iloc[-1]], edges, atol=1e-15)
    np.testing.assert_allclose(held["end"], edges[1:], atol=1e-15)
    np.testing.assert_allclose(held["share"], expected / expected.sum())
    assert ((held["low"] <= 1 / n_bins) & (1 / n_bins <= held["high"])).all()


def test_the_calibration_curve_counts_outcomes_below_each_quantile():
    rng = np.random.default_rng(1)
    pit, weight = rng.beta(2, 3, size=(60, 2)), rng.uniform(0.5, 2, size=60)
    pit[0] = 0.25  # at the quantile is not above it
    held = quick_pits(pit, r=rng.uniform(size=pit.shape), sample_weight=weight).to_dict()[
        "calibration"
    ]
    assert [row["level"] for row in held] == [k / 20 for k in range(1, 20)]
    for row in held:
        below = sum(
            w * sum(p <= row["level"] for p in person) / 2
            for person, w in zip(pit, weight, strict=True)
        )
        assert row["observed"] == pytest.approx(below / weight.sum(), abs=1e-12)
        assert 0 <= row["low"] <= row["observed"] <= row["high"] <= 1


@statistical
@pytest.mark.parametrize("n_draws", [1, 4])
def test_the_band_of_the_calibration_curve_holds_at_all_levels_at_once(n_draws):
    """Calibrated forecasts leave it in at most 5% of samples (false-alarm rate 1e-3)."""
    rng, link, n, runs = np.random.default_rng(2), Entropic(0.5), 100, repeats(400)
    outside = 0
    for _ in range(runs):
        u = rng.uniform(size=(n, 1))
        pit = u if n_draws == 1 else link.ppf(u, jittered(n, n_draws, rng))
        curve = calibration_curve(Cells(pit))
        outside += any(not point.low <= point.level <= point.high for point in curve)
    assert stats.binomtest(outside, runs, 0.05, alternative="greater").pvalue > 1e-3


def test_the_provenance_names_versions_model_data_and_seed():
    X, y = table()
    outcomes = Outcomes(y, person=np.arange(N) // 2)
    made = audit(Stub(0.8), X, outcomes, random_state=7, name="mine").provenance
    assert (made["evenhand"], made["python"]) == (evenhand.__version__, platform.python_version())
    modules = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "pandas": pd}
    expected = {n: m.__version__ for n, m in modules.items()}
    assert {name: made["packages"][name] for name in modules} == expected
    assert set(made["packages"]) - set(modules) == ({"torch"} if "torch" in sys.modules else set())
    assert (made["command"], made["random_state"]) == (None, 7)
    assert made["model"] == {"name": "mine", "kind": "Stub", "sha256": None}
    assert made["data"] == {"name": None, "sha256": None, "n_rows": N}
    assert len(made["values_sha256"]) == 64
    assert made["draws"].startswith(
        "made for this audit: 64 draws per row, one at random in each of 64 equal parts"
    )
    unseeded = audit(Stub(), X, y, random_state=np.random.default_rng(0)).provenance
    wanted = (None, "none: one forecast per row, without randomization")
    assert (unseeded["random_state"], unseeded["draws"]) == wanted


def test_sources_are_added_with_their_hashes(tmp_path):
    X, y = table()
    rows = np.arange(100, 100 + N)
    found = audit(Stub(), X, y, random_state=0)
    (tmp_path / "t.csv").write_bytes(b"a,b\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text('{"sha256": "0f"}')
    sources = {"model": tmp_path / "model", "data": tmp_path / "t.csv"}
    made = with_sources(found, command="evenhand fit \udcff", n_rows=900, **sources)
    # a file's name may be bytes that are no text
    assert made.provenance["command"] == "evenhand fit ?"
    assert made.provenance["model"]["sha256"] == "0f"
    digest = hashlib.sha256(b"a,b\n").hexdigest()
    assert made.provenance["data"] == {"name": "t.csv", "sha256": digest, "n_rows": 900}
    members = renumbered(found, rows).members["row"], found.members["row"] + 100
    np.testing.assert_array_equal(*members)
    assert found.provenance["command"] is None
    folder = with_sources(found, data=tmp_path).provenance["data"]
    assert folder == {"name": tmp_path.name, "sha256": None, "n_rows": N}


def texts(notes):
    return [str(one) for one in notes]


def test_few_rows_leave_notes_instead_of_numbers():
    X, y = table(60)
    found = full_audit(Stub(), X, y, random_state=0, search=Search(n_simulations=2))
    assert found.scan.empty
    assert found.learned.empty
    assert found.notes[0] == note(NoteKind.TOO_FEW_TO_SCAN, numbers=(150, 60))
    *unlearned, unmeasured = texts(found.notes)[1:]
    assert unlearned == [
        f"no group of {mass:.0%} was learned: 60 rows are too few for mass {mass} and 4 folds,"
        f" which need at least {needed} rows"
        for mass, needed in ((0.1, 334), (0.2, 167), (0.5, 100))
    ]
    assert unmeasured.startswith("coverage was not estimated by features")
    assert found.miscoverage.empty


def test_a_group_of_few_rows_or_of_one_heavy_row_is_too_small():
    X, y = table()
    groups = {"29": np.arange(N) < 29, "30": np.arange(N) < 30}
    assert audit(Stub(), X, y, groups=groups).groups["too_small"].tolist() == [False, True, False]
    weight = np.where(np.arange(N) < N // 2, 1.0, 1e-6)
    weight[0] = 1e6
    groups = {"one": np.arange(N) < 100}
    row = audit(Stub(), X, Outcomes(y, weight=weight), groups=groups).groups.iloc[1]
    assert row["too_small"]
    assert (row["error_low"], row["error_high"]) == (0.0, 0.5)
    assert row["coverage_80_high"] - row["coverage_80_low"] > 0.5  # Wilson's band of one trial


def test_what_was_left_out_or_read_in_a_way_is_noted(monkeypatch):
    X, y = table()
    north, share = (X["region"] == "north").to_numpy(), np.linspace(0.1, 0.9, N)
    known = Outcomes(y, weight=~north)
    found = audit(Stub(), X, known, groups={"north": north, "south": ~north})
    assert list(found.groups["group"]) == ["everyone", "south"]
    assert note(NoteKind.EMPTY_GROUP, ("north",)) in found.notes
    for groups, kind, name in (
        ({"proxy": share}, NoteKind.PROBABLE_GROUPS, "proxy"),
        (["share"], NoteKind.HALVED_FRACTIONS, "share"),
    ):
        noted = quick_pits(special.ndtr(y), X=X.assign(share=share), groups=groups)
        assert note(kind, (name,)) in noted.notes
        assert noted.membership.empty == (kind is NoteKind.HALVED_FRACTIONS)
    twice = X.assign(person=[f"p{i // 2}" for i in range(N)])
    named = twice.assign(id=[f"p{i}" for i in range(N)], score=X["score"].astype(object))
    search = Search(n_simulations=2, learned_masses=(0.5,), masses=MASSES)
    ids, alone = (
        full_audit(flat(N), one, y, search=search, random_state=0) for one in (named, twice)
    )
    assert note(NoteKind.COLUMN_NOT_LEARNED, ("id",)) in ids.notes
    noted = notes_of(ids.notes, NoteKind.FEATURES, NoteKind.LEARNED_ALONE)
    assert [one.subject for one in noted] == [tuple(X.columns), ("person",)]
    pd.testing.assert_frame_equal(ids.learned, alone.learned)
    skewed, even = np.exp(1.5 * y / STD), np.arange(N) / N
    (one,) = notes_of(audit(flat(N), y=skewed).notes, NoteKind.SKEWED_RESIDUALS)
    assert one.numbers == (pytest.approx(stats.skew(skewed)),)
    assert not notes_of(audit(flat(N), y=even).notes, NoteKind.SKEWED_RESIDUALS)
    # PITs and groups are of all rows; scores of 250 rows chosen at random
    whole = audit(Stub(), X, y, groups=["region"], random_state=0)
    monkeypatch.setattr("evenhand.audits.forecasts.BLOCK_ROWS", 250)
    parts = audit(Stub(), X, y, groups=["region"], random_state=0)
    np.testing.assert_allclose(parts.groups["error"], whole.groups["error"], rtol=1e-12)
    np.testing.assert_allclose(parts.groups["bias"], whole.groups["bias"], rtol=1e-9)
    assert parts.notes[0] == note(NoteKind.SCORED_ROWS, numbers=(250,))
    # the rows are missed by three bands of 95% in 10^-8
    band = 3 * 1.96 * np.std(stats.norm(X["score"], STD).logpdf(y)) / np.sqrt(250)
    assert parts.score("log score") == pytest.approx(whole.score("log score"), abs=band)


def test_a_mistaken_option_is_an_error_and_not_a_note():
    refused(r"masses\[1\] must be above 0 and at most 1.* 3", Search, masses=[0.2, 3])
    learned = r"learned_masses\[0\] must be above 0 and at most 1.* 0"
    refused(learned, Search, learned_masses=[0, 3])
    refused("min_size .*at least 2.* 1", Search, min_size=1)
    refused("n_simulations .*at least 2.* 1", Search, n_simulations=1)
    refused("confidence must be .* 95", Search, confidence=95)
    for value in (-0.1, 2, np.nan, "much"):
        refused("tolerance must be at least 0 and at most 1", Search, tolerance=value)


def test_pits_alone_are_audited_like_the_forecasts_behind_them():
    X, y = table(1000)
    forecast = Forecast.from_normal(X["score"], np.full(1000, STD))
    whole = audit(
        forecast, y=y, features=X, groups={"north": X["region"] == "north"}, random_state=0
    )
    groups = {"north": (X["region"] == "north").to_numpy()}
    residual = y - X["score"].to_numpy()
    alone = quick_pits(forecast.pit(y), X=X.astype(object), residual=residual, groups=groups)
    for column in ("group", "n", "error", "direction", "bias", "coverage_80", "p_value"):
        left, right = (a.scan.sort_values("group")[column].to_numpy() for a in (whole, alone))
        pd.testing.assert_series_equal(pd.Series(left), pd.Series(right))
    np.testing.assert_allclose(whole.worst_groups["error"], alone.worst_groups["error"])
    assert alone.scores["measure"].tolist() == ["80% coverage", "90% coverage", "average error"]
    assert "nan" not in alone.summary(full=True).lower()


def test_a_forecast_that_is_none_is_named_by_its_row_in_any_block(monkeypatch):
    monkeypatch.setattr("evenhand.audits.forecasts.BLOCK_ROWS", 250)
    rows = pd.DataFrame({"mu": np.linspace(-2, 2, 900), "sigma": 1.0})
    model = RandomizedRegressor(ForecastColumns("mu", "sigma")).fit(rows, rows["mu"])
    rows.loc[700, "sigma"] = -1
    with pytest.raises(InputError, match="X: column 'sigma', row 701 must be finite and pos"):
        audit(model, rows, np.sin(np.arange(900.0)), random_state=0)


@pytest.mark.parametrize(("link", "n"), [("entropic", 520), ("laplace", 150)])
def test_a_link_is_certified_from_the_pits_of_its_base(link, n):
    X, y = table(n)
    model = RandomizedRegressor(lambda rows: (rows["score"].to_numpy(), np.full(len(rows), STD)))
    model.set_params(alpha=0.12, link=link).fit(X, y)
    expected = certify_link(stats.norm(X["score"], STD).cdf(y), make_link(link, 0.12))
    one_each, several, shared = (
        model.forecast(X, r) for r in (fresh(n, 0), jittered(n, 4, 0), nodes(4))
    )
    for proof in (
        certify(model, X, y, groups=["region"], random_state=0),
        certify(one_each, y=y, random_state=0),
        certify(several, y=y, random_state=0),
    ):
        assert (proof.link, proof.bound, proof.choice.rule) == (expected.link, "sharp", "fixed")
        for mass in (0.2, 1.0):
            assert proof.group_error(mass) == pytest.approx(expected.group_error(mass), abs=1e-9)
        assert proof.coverage(0.8, 0.2) == pytest.approx(expected.coverage(0.8, 0.2), abs=1e-9)
        assert proof.average_error() == proof.group_error(1.0)
        assert proof.questions["answered"].tolist() == [True, True, True, True, False]
        assert 0 < proof.mpaic(0.3) < 1
    # the draws need not be known for these bounds, but served PITs of shared ones prove nothing
    refused(r"cells|same draws", certify, shared, y=y)
    # other methods bound the errors over draws, of any forecaster
    assert certify(model, X, y, method="betting", mass=0.2, random_state=0).bound is None
    unrelated = certify(model.base_forecast(X), y=y, random_state=0)
    assert (unrelated.link, unrelated.bound) == (None, None)


def test_people_of_a_link_with_several_rows_are_counted_once(monkeypatch):
    kept = []

    def spied(cells, *given, base, **options):
        kept.extend((cells, base))
        return part_of_rows(cells, *given, base=base, **options)

    monkeypatch.setattr("evenhand.certificates.certify.part_of_rows", spied)
    X, y = table(300)
    people = np.arange(300) // 2
    proof = certify(Stub(0.8, by_link=True), X, Outcomes(y, person=people), random_state=0)
    cells, base = kept
    assert proof.n_samples == base.n_samples == 150
    # the base's PITs are those of the rows whose served PITs are kept
    u = stats.norm(X["score"], STD).cdf(y)
    assert np.abs(u.reshape(150, 2) - base.drawn).min(axis=-1).max() < 1e-12
    link = gaussian_link(0.8)
    np.testing.assert_allclose(link.ppf(base.drawn, cells.draws), cells.drawn, atol=1e-9)
    assert proof.group_error(0.2) == certify_link(base.drawn, link).group_error(0.2)
    assert any("share of the rows" in text for text in proof.not_covered)
    weighted = Outcomes(y, weight=1 + people)
    assert audit(Stub(0.8, by_link=True), X, weighted, random_state=0).certificate is None
