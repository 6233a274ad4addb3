"""Comparisons of models and of audits: paired intervals, refusals, files and texts."""

import json
import re
from functools import cache

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from complaints import refused
from evenhand import Forecast, Outcomes, audit, compare
from evenhand.audits import Search, comparison
from evenhand.calibration import Profile, paired_change
from repeats import most_failures, repeats, statistical

replace = msgspec.structs.replace

N = 600
EDGES = np.arange(1, 40) / 40
QUICK = {"search": Search(n_simulations=2, learned_masses=(), masses=(1.0,))}


@cache
def people():
    random = np.random.default_rng(3)
    X = pd.DataFrame({"age": random.uniform(20, 80, N), "sex": random.choice(["f", "m"], N)})
    return X, np.where(X["sex"] == "f", 1.2, 0.0) + random.normal(size=N)


def forecast(kind):
    X, _ = people()
    mean = np.where(X["sex"] == "f", 1.2, 0.0) if kind == "repaired" else np.zeros(N)
    found = Forecast.from_normal(mean, np.ones(N))
    if kind == "randomized":
        found = found.randomized(0.2, r=np.random.default_rng(0).random((N, 16)))
    return found


@cache
def compared(before, after):
    X, y = people()
    options = {"groups": ["sex"], "random_state": 0, **QUICK}
    return compare(forecast(before), forecast(after), X, y, names=(before, after), **options)


@cache
def audited(kind):
    X, y = people()
    return audit(forecast(kind), X, y, groups=["sex"], random_state=0, name=kind, **QUICK)


def by_group(found):
    return found.groups.set_index("group")


def test_a_repair_makes_a_group_better_and_nothing_else():
    found = compared("wrong", "repaired")
    groups = by_group(found)
    assert found.is_paired
    assert groups.loc["sex = f", ["outcome", "important"]].tolist() == ["better", True]
    assert groups.loc["sex = f", "error_change_high"] < 0
    # forecasts of men are the same in both
    assert groups.loc["sex = m", ["outcome", "error_change"]].tolist() == ["not significant", 0]
    assert not found.is_worse
    assert compared("repaired", "wrong").is_worse
    back = by_group(compared("repaired", "wrong")).loc["sex = f"]
    assert back["outcome"] == "worse"
    assert back["error_change_low"] == pytest.approx(-groups.loc["sex = f", "error_change_high"])


def test_changes_are_those_of_the_tables_of_both_audits():
    found = compared("wrong", "randomized")
    rows = by_group(found)
    for when, made in zip(("before", "after"), found.audits, strict=True):
        # the audits are those that `audit` makes
        pd.testing.assert_frame_equal(made.groups, audited(made.name).groups)
        table = made.groups.set_index("group")
        for measure in ("error", "coverage_80", "coverage_90", "bias"):
            for group in ("everyone", "sex = f", "sex = m"):
                assert rows.loc[group, f"{measure}_{when}"] == table.loc[group, measure]
        for row in found.scores.itertuples():
            if not row.measure.startswith("certified"):
                assert getattr(row, when) == made.score(row.measure)
    scored = found.scores.dropna(subset="change_low")
    assert len(scored) >= 3
    assert scored.eval("change_low < change < change_high").all()


def test_intervals_are_those_of_the_rows_of_a_group():
    found = compared("wrong", "repaired")
    X, y = people()
    rule = re.compile(r"age > [\d.]+ and sex = f")
    (group,) = filter(rule.fullmatch, found.groups["group"])
    mask = (X["age"] > float(group.split()[2])) & (X["sex"] == "f")
    n = int(mask.sum())
    row = by_group(found).loc[group]
    # residuals of women change by 1.2 each, so the change of their mean has no spread
    assert (row["bias_change_low"], row["bias_change_high"]) == pytest.approx((-1.2, -1.2))
    # that of the coverage is the interval of Bonett and Price
    covered = [np.abs(y[mask] - mean) <= stats.norm.ppf(0.9) for mean in (0.0, 1.2)]
    change = covered[1].astype(float) - covered[0]
    t = stats.t.ppf(1 - 0.05 / (2 * len(found.groups)), n - 1)
    half = t * np.sqrt(change.var() * n + t**2 / 2) / (n + t**2 / 2)
    ends = row["coverage_80_change_low"], row["coverage_80_change_high"]
    assert ends == pytest.approx((change.mean() - half, change.mean() + half))


def test_groups_of_the_same_rows_are_shown_once():
    X, y = people()
    options = {"groups": {"women": X["sex"] == "f"}, "random_state": 0, **QUICK}
    found = compare(forecast("wrong"), forecast("repaired"), X, y, **options)
    assert by_group(found).loc["sex = f", "n"] == by_group(found).loc["women", "n"]
    shown = [line.split("  ")[0] for line in found.summary(full=True).splitlines()]
    assert ("women" in shown, "sex = f" in shown, "sex = m" in shown) == (True, False, True)


@pytest.mark.parametrize("n", [600, 20_500])
def test_both_audits_use_the_same_rows_whatever_the_seed(n):
    # one row of each person is audited, and of over 20,000 rows a sample is scored
    y = np.random.default_rng(0).normal(size=n)
    person = np.arange(n) // 2 if n < 1000 else None
    given = Forecast.from_normal(np.zeros(n), np.full(n, 0.7))
    found = compare(given, given, y=Outcomes(y, person=person), **QUICK)
    assert (found.groups["bias_change"] == 0).all()
    scored = found.scores.dropna(subset="change_low")
    assert (scored[["change", "change_low", "change_high"]] == 0).all(axis=None)
    assert found.n_samples == (n // 2 if n < 1000 else n)
    # nor is a difference of rounding a change
    p, odd = np.linspace(0.1, 0.3, n), np.arange(n) % 2
    both = Forecast.from_probability(p), Forecast.from_probability(p * (1 + 1e-15))
    close = compare(*both, y=odd, groups={"low": p < 0.2}, **QUICK)
    assert close.groups["outcome"].tolist() == ["not significant"] * 2
    assert len(found.notes) == (n < 1000)


def test_the_interval_of_a_bias_is_that_of_a_paired_t_test():
    first, second = np.random.default_rng(0).normal(size=(2, 80, 1))
    sides = Profile(first), Profile(second)
    mask = np.arange(80) < 60
    found = paired_change(*sides, np.ones(80), mask, 4, 0.95)
    change = (second - first)[mask, 0]
    # Bonferroni over 4; the variance divides by n, as in all tables of an audit
    half = stats.t.ppf(1 - 0.05 / 8, 59) * change.std() / np.sqrt(60)
    assert (found.low, found.high) == pytest.approx((change.mean() - half, change.mean() + half))
    # from 50 rows on; 1 / sum (1 / n)^2 may be a rounding error below n
    for n in (49, 50):
        few = paired_change(*sides, np.ones(80), np.arange(80) < n, 1, 0.95)
        assert np.isfinite([few.low, few.high]).all() == (n >= 50)
    # of errors too; unknown if fewer than 20 rows differ, and 0 if none does
    for n, k in ((0, 1), (19, 1), (20, 1), (0, 2), (19, 2), (20, 2)):
        both = [Profile(1 + first + np.tile(np.c_[:80] < m, k), np.zeros(k)) for m in (0, n)]
        few = paired_change(*both, np.ones(80), mask | True, 1, 0.95)
        assert (few.low < few.high, np.isnan(few.low)) == (n == 20, n == 19)


SCENARIOS = {
    "calibrated before and after": ((0.0, 1.0), (0.0, 1.0)),
    "repaired mean": ((0.4, 1.0), (0.0, 1.0)),
    "spread made wrong": ((0.0, 1.0), (0.0, 1.4)),
    "both wrong alike": ((0.2, 1.0), (0.2, 1.0)),
}
SETS = 400
GROUPS, ONES = 12, np.ones(1800)
MASKS = [np.arange(ONES.size) % GROUPS == g for g in range(GROUPS)]


def cdf(kind, level):
    """Distribution function of PITs whose normal score is `shift + scale * z`."""
    return np.asarray(stats.norm.cdf((stats.norm.ppf(level) - kind[0]) / kind[1]))


@statistical
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_paired_intervals_contain_all_true_changes_jointly(scenario, correlation):
    """In 5% of tables at most any interval of a measure misses; false alarm 1e-6 by `repeats`."""
    first, second = SCENARIOS[scenario]
    random = np.random.default_rng(list(SCENARIOS).index(scenario))
    error = [np.abs(cdf(kind, EDGES) - EDGES).mean() for kind in (first, second)]
    covered = [np.diff(cdf(kind, np.array([0.1, 0.9])))[0] for kind in (first, second)]
    truth = error[1] - error[0], covered[1] - covered[0]
    n_sets, missed = repeats(SETS), np.zeros(2, dtype=int)
    for _ in range(n_sets):
        z, other = random.normal(size=(2, ONES.size))
        other = correlation * z + np.sqrt(1 - correlation**2) * other
        pits = [stats.norm.cdf(k[0] + k[1] * one) for k, one in ((first, z), (second, other))]
        errors = [Profile((pit[:, None] <= EDGES).astype(float), EDGES) for pit in pits]
        shares = [Profile((np.abs(pit - 0.5) <= 0.4)[:, None] * 1.0, is_share=True) for pit in pits]
        for i, sides in enumerate((errors, shares)):
            found = [paired_change(*sides, ONES, mask, GROUPS, 0.95) for mask in MASKS]
            missed[i] += any(not one.low <= truth[i] <= one.high for one in found)
    assert missed.max() <= most_failures(n_sets)


EVENTS = {
    "calibrated before and after": (0.3, 0.0, 0.0),
    "clearly worse": (0.6, -0.15, -0.25),
    "from above to below": (0.4, 0.08, -0.08),
    "rare and calibrated before": (0.01, 0.0, 0.03),
    "rare and repaired": (0.02, 0.05, 0.0),
}


@statistical
@pytest.mark.parametrize("scenario", EVENTS)
def test_changes_of_the_difference_of_event_rates_are_contained_jointly(scenario):
    """In 5% of tables at most any interval misses; false alarm 1e-6 by `repeats`."""
    rate, *shifts = EVENTS[scenario]
    random = np.random.default_rng(list(EVENTS).index(scenario))
    n_sets, missed, proven = repeats(SETS), 0, 0
    for _ in range(n_sets):
        p = rate * random.uniform(0.5, 1.5, ONES.size)
        y = (random.random(ONES.size) < p).astype(float)
        # the second model has other features, too
        noise = rate * random.uniform(-0.2, 0.2, ONES.size)
        off = y - p - shifts[0], y - p - shifts[1] + noise
        before, after = (Profile(one[:, None], np.zeros(1)) for one in off)
        found = [paired_change(before, after, ONES, mask, GROUPS, 0.95) for mask in MASKS]
        truth = abs(shifts[1]) - abs(shifts[0])
        missed += any(not one.low <= truth <= one.high for one in found)
        proven += sum(one.low > 0 for one in found)
    assert missed <= most_failures(n_sets)
    # a change of 10 points, where the standard error of a difference is 4
    assert proven > 0.9 * n_sets * GROUPS or scenario != "clearly worse"


def files(folder, first, second):
    first.to_json(folder / "old.json")
    second.to_json(folder / "new.json")
    return folder / "old.json", folder / "new.json"


def test_two_audits_are_compared_by_estimates_with_their_own_intervals(tmp_path):
    both = audited("wrong"), audited("repaired")
    found = compare(*files(tmp_path, *both))
    assert found.to_dict() == compare(*both).to_dict()
    assert [found.is_paired, found.is_worse] == [False, False]
    rows = by_group(found)
    for when, made in zip(("before", "after"), both, strict=True):
        table = made.groups.set_index("group")
        for measure in ("error", "coverage_80", "coverage_90", "bias"):
            for end in ("", "_low", "_high"):
                expected = table[f"{measure}{end}"]
                got = rows.loc[expected.index, f"{measure}_{when}{end}"]
                np.testing.assert_array_equal(got, expected)
    before, after = (one.groups.set_index("group")["problem"] for one in both)
    assert (before["sex = f"], after.any()) == (True, False)
    for group, is_problem in before.items():
        assert rows.loc[group, "outcome"] == ("problem before" if is_problem else "no problem")
    assert "Paired intervals: compare(model_a, model_b, X, y), or evenhand" in found.summary()
    assert compare(*reversed(both)).summary().count(" of them new.") == 1


def test_audits_of_other_rows_are_compared_in_the_groups_of_both():
    X, y = people()
    women = X["sex"] == "f"
    fewer = audit(forecast("wrong")[:400], X[["sex"]][:400], y[:400], groups=["sex"], **QUICK)
    found = compare(audited("wrong"), fewer)
    assert found.groups["group"].tolist() == ["everyone", "sex = f", "sex = m"]
    row = by_group(found).loc["sex = f"]
    assert (row["n"], row["n_after"]) == (women.sum(), women[:400].sum())
    assert "600 and 400 rows" in found.summary()
    assert f"{women.sum()} → {women[:400].sum()}" in found.to_html()
    assert any(note.startswith("Groups only in wrong are not compared") for note in found.notes)


def test_audits_of_one_name_are_named_by_their_files(tmp_path):
    again = audited("repaired").with_rows(name="wrong")
    paths = files(tmp_path, audited("wrong"), again)
    assert compare(*paths).names == ("old", "new")
    # an audit of this process has no file
    assert compare(paths[0], again).names == ("wrong (first)", "wrong (second)")
    assert compare(*paths, names=("a", "b")).summary().startswith("Before: a. After: b. 600 rows")


def test_what_is_neither_two_models_nor_two_audits_is_refused():
    X, _ = people()
    both = forecast("wrong"), forecast("repaired")
    refused("y is missing", compare, *both, X)
    refused("pass X= and y= to compare models, or y= to compare forecasts", compare, *both)
    refused("be a forecaster or a Forecast", compare, audited("wrong"), both[1], X, people()[1])


BETTER, WORSE, SMALLER = ("better", True), ("worse", True), ("better", False)
SLIGHT = " the error changed by less than 2 points."
NONE = "NO SIGNIFICANT CHANGE"


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([], f"{NONE} of the error in 6 groups."),
        ([BETTER, BETTER], "BETTER in 2 groups, worse in none."),
        ([BETTER, BETTER, WORSE], "WORSE in 1 group, better in 2."),
        ([BETTER, SMALLER], f"BETTER in 1 group, worse in none. In 1 group{SLIGHT}"),
        ([SMALLER, SMALLER], f"{NONE} beyond 2 points in 6 groups. In 2 groups{SLIGHT}"),
        ([("unknown", False)], f"{NONE} of the error in 6 groups. 1 group has no interval."),
    ],
)
def test_the_first_sentence_counts_the_changes(outcomes, verdict):
    listed = [*outcomes, *[("not significant", False)] * (6 - len(outcomes))]
    first = compared("wrong", "repaired")
    row = next(one for one in first.made.groups if one.group == "sex = m")
    rows = [
        replace(row, group=f"g{i}", n=50 + i, n_after=50 + i, outcome=outcome, important=important)
        for i, (outcome, important) in enumerate(listed)
    ]
    found = first.with_rows(groups=tuple(rows))
    assert verdict == " ".join(found.summary().split("\n\n")[1].split())
    assert verdict in found.to_html()
    assert verdict in " ".join(found.summary(full=True).split())
    assert found.is_worse == verdict.startswith("WORSE")


@pytest.mark.parametrize("after", ["repaired", "randomized"])
def test_a_text_has_at_most_16_lines_of_80_characters(after):
    paired = compared("wrong", after)
    long = tuple(replace(one, group=f"{one.group} and {'x' * 90}") for one in paired.made.groups)
    for found in (
        paired,
        compare(*paired.audits),
        paired.with_rows(groups=long, names=("a" * 90, "b" * 90)),
    ):
        lines = found.summary().split("\n")
        assert len(lines) <= 16
        assert max(map(len, lines)) <= 80
        assert lines[-1] == "- All groups: summary(full=True)"


def test_tables_are_written_with_all_digits_and_replaced(tmp_path):
    folder = tmp_path / "tables"
    found = audited("wrong")
    for _ in range(2):
        paths = found.to_csv(folder)
    assert {path.name for path in paths} | {"tables.json"} == {p.name for p in folder.iterdir()}
    groups = pd.read_csv(folder / "groups.csv", float_precision="round_trip")
    numbers = ["error", "bias", "coverage_80_low"]
    np.testing.assert_array_equal(groups[numbers], found.groups[numbers])
    scan = pd.read_csv(folder / "scan.csv")
    assert [tuple(json.loads(text)) for text in scan["features"]] == list(found.scan["features"])
    changes = compared("wrong", "repaired").to_csv(tmp_path / "changes")
    assert [path.name for path in changes] == ["groups.csv", "scores.csv"]


@pytest.mark.parametrize("name", ["tables.json", "groups.csv", "mine.txt"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    for text in ("{}", "mine", '{"schema": "evenhand.tables/1", "files": null}'):
        (tmp_path / name).write_text(text)
        refused("contains other files", audited("wrong").to_csv, tmp_path)
        assert [path.read_text() for path in tmp_path.iterdir()] == [text]
    refused("is one; use a new or empty folder", audited("wrong").to_csv, tmp_path / name)


def test_tables_of_an_audit_are_not_replaced_by_those_of_a_comparison(tmp_path):
    audited("wrong").to_csv(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused("contains other files", compared("wrong", "repaired").to_csv, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_texts_are_no_formulas_of_a_spreadsheet(tmp_path):
    names = ["=1+1", "@x", "-5", "+cmd", "\tx", "a=b"]
    found = audited("wrong")
    rows = tuple(replace(found.made.groups[1], group=name) for name in names)
    found.with_rows(groups=rows).to_csv(tmp_path)
    written = pd.read_csv(tmp_path / "groups.csv")["group"].tolist()
    assert written == ["'=1+1", "'@x", "-5", "'+cmd", "'\tx", "a=b"]


# --- comparisons of forecasts of 0/1 outcomes: errors in rate, paired by row


N_EVENTS = 6000


@cache
def people_with_events():
    """Return people of whom log odds have the slope 0.62."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {"z": random.normal(-0.2, 1.2, N_EVENTS), "sex": random.choice(["f", "m"], N_EVENTS)}
    )
    return X, (random.uniform(size=N_EVENTS) < special.expit(0.62 * X["z"])).astype(np.float64)


def probability(slope, shift=0.0):
    X, _ = people_with_events()
    return np.asarray(special.expit(slope * X["z"] + shift * (X["sex"] == "f")))


@cache
def compared_events(*predicted):
    X, y = people_with_events()
    options = {"features": X[["sex"]], "groups": ["sex"], "random_state": 0, **QUICK}
    before, after = (Forecast.from_probability(probability(*one)) for one in predicted)
    return compare(before, after, X, y, **options)


def test_scores_that_are_too_extreme_get_better_though_their_mean_was_right():
    found = compared_events((1.0, 0), (0.62, 0))
    everyone = found.groups.iloc[0]
    assert everyone["group"] == "everyone"
    assert (everyone["outcome"], everyone["important"]) == ("better", True)
    # 6.4 points before (verdict: 0)
    assert 0.04 < everyone["error_before"] < 0.09
    assert everyone["error_change_low"] < everyone["error_change"] < everyone["error_change_high"]
    assert everyone["error_change_high"] < 0
    assert abs(everyone["bias_change"]) < 0.02
    assert not found.is_worse
    back = compared_events((0.62, 0), (1.0, 0))
    assert back.groups.loc[0, "outcome"] == "worse"
    assert back.is_worse


def test_a_group_is_compared_by_its_rate():
    found = compared_events((0.62, 0.8), (0.62, 0)).groups.set_index("group")
    X, y = people_with_events()
    for group, letter in (("sex = f", "f"), ("sex = m", "m")):
        mask = (X["sex"] == letter).to_numpy()
        for when, shift in (("before", 0.8), ("after", 0.0)):
            p = probability(0.62, shift)[mask]
            row = found.loc[group]
            assert row[f"predicted_{when}"] == pytest.approx(p.mean())
            assert row[f"bias_{when}"] == pytest.approx(y[mask].mean() - p.mean())
            assert row[f"error_{when}"] == pytest.approx(abs(y[mask].mean() - p.mean()))
            loss = -np.log(np.where(y[mask] == 1, p, 1 - p)).mean()
            assert row[f"log_loss_{when}"] == pytest.approx(loss)
            assert np.isfinite(row[f"slope_{when}"])
        rates = found.loc[group, ["rate_before", "rate_after"]]
        assert rates.tolist() == pytest.approx([y[mask].mean()] * 2)
    assert found.loc["sex = f", "outcome"] == "better"
    assert found.loc["sex = m", "outcome"] == "not significant"
    assert found.loc["sex = m", "error_change"] == 0


@pytest.mark.parametrize("paired", [True, False])
def test_there_is_no_coverage_and_groups_by_the_forecast_are_not_listed(paired):
    made = compared_events((1.0, 0), (0.62, 0))
    found = made if paired else compare(*made.audits)
    assert found.groups["group"].tolist()[:3] == ["everyone", "sex = f", "sex = m"]
    plain = found.to_dict()
    text = json.dumps({key: plain[key] for key in ("groups", "scores", "notes")})
    assert "coverage" not in text
    assert "tenth" not in text
    assert plain["tolerance"] == made.audits[1].tolerance
    # nor a certificate for every group, which an audit of 0/1 outcomes says there cannot be
    page = " ".join(found.summary(full=True).split())
    assert not [word for word in ("coverage", "covers", "every group", "ertified") if word in page]


SLOPES = {
    "right before and after": (1.0, 1.0),
    "too extreme before, right after": (0.62, 1.0),
    "right before, too extreme after": (1.0, 0.62),
    "too extreme in both": (0.62, 0.62),
    "slightly too extreme before": (0.9, 1.0),
}
N_PARTS = 4


@statistical
@pytest.mark.parametrize("n", [600, 2000])
@pytest.mark.parametrize("scenario", SLOPES)
def test_paired_intervals_of_rates_contain_all_true_changes_jointly(scenario, n):
    """Any of 5 intervals misses in at most 5% of tables; slopes are those of true log odds."""
    random = np.random.default_rng(n + list(SLOPES).index(scenario))
    masks = [np.arange(n) % N_PARTS == g for g in range(N_PARTS)]
    n_sets, missed = repeats(SETS), 0
    for _ in range(n_sets):
        odds = random.normal(-0.2, 1.0, n)
        true = special.expit(odds)
        y = (random.uniform(size=n) < true).astype(np.float64)
        both, truths = [], []
        for slope in SLOPES[scenario]:
            p = special.expit(odds / slope)
            both.append(comparison.event_profiles(y, p, None))
            parts = np.array_split(np.argsort(p), min(n // 150, 10))
            bent = sum(abs((true - p)[rows].sum()) for rows in parts) / n
            truths.append([bent, *(abs((true - p)[mask].mean()) for mask in masks)])
        members = {"everyone": np.ones(n, dtype=bool)} | dict(enumerate(masks))
        changes = comparison.changes_of(*both, np.ones(n), members.items(), len(members), 0.95)
        found = [changes[name, "error"] for name in members]
        gaps = np.subtract(truths[1], truths[0])
        missed += any(not one.low <= gap <= one.high for one, gap in zip(found, gaps, strict=True))
    assert missed <= most_failures(n_sets)
