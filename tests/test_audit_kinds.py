"""Audits of counts, of amounts with zeros, of 0/1 outcomes and of rounded outcomes."""

import json
from functools import cache

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand import Forecast, audit, audit_pit, certify, compare
from evenhand._validate import DiscreteOutcomeWarning
from evenhand.audits import CountPlan, count_rows, judged, parse_condition
from evenhand.audits import audited as audited_rows
from evenhand.audits.forecasts import Audited, read_subject
from evenhand.calibration import Cells, calibration_error, cell_error, covered
from evenhand.certificates import WIDER_LEVELS
from evenhand.distributions import OutcomeKind
from evenhand.draws import jittered
from evenhand.outcomes import Rounding, as_outcomes
from evenhand.report import NoteKind, notes_of
from evenhand.results import audit_schema
from evenhand.tables import EVERYONE
from parts_examples import QUICK_AUDIT as QUICK

N = 800
KINDS = ("binary", "count", "hurdle")
SPREAD = 0.6
"""Standard deviation of the logarithm of positive amounts."""


def amounts(location):
    """Return lognormal forecasts by their quantiles, close enough for tests of arithmetic."""
    levels = np.arange(1, 200) / 200
    return Forecast.from_quantiles(
        levels, np.exp(location[:, None] + SPREAD * stats.norm.ppf(levels))
    )


@cache
def people():
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": random.uniform(20, 80, N).round(1),
            "sex": random.choice(["f", "m"], N),
            "chance": random.beta(1, 5, N),
            "mean": random.gamma(4.0, 0.4, N),
        }
    )


@cache
def outcomes(kind):
    random = np.random.default_rng(6)
    X = people()
    chance, mean = X["chance"].to_numpy(), X["mean"].to_numpy()
    if kind == "binary":
        return Forecast.from_probability(chance), (random.random(N) < chance) * 1.0
    if kind == "count":
        return Forecast.from_poisson(mean), random.poisson(mean) * 1.0
    forecast = Forecast.from_hurdle(chance, amounts(np.log(mean)))
    return forecast, forecast.sample(random)


@cache
def audited(kind):
    forecast, y = outcomes(kind)
    return audit(forecast, people(), y, groups=["sex"], name=kind, **QUICK)


def test_cells_of_a_hurdle_are_empty_off_the_atom():
    forecast, y = outcomes("hurdle")
    found = read_subject(Audited(forecast, None), as_outcomes(y), np.random.default_rng(0))
    chance = people()["chance"].to_numpy()
    zero = y == 0
    np.testing.assert_array_equal(found.cells.low[zero, 0], 0.0)
    np.testing.assert_allclose(found.cells.high[zero, 0], chance[zero], rtol=1e-12)
    np.testing.assert_array_equal(found.cells.low[~zero], found.cells.high[~zero])
    # given that the outcome is not the atom
    np.testing.assert_array_equal(found.positive.rows, np.flatnonzero(~zero))
    inside = (found.cells.drawn[~zero, 0] - chance[~zero]) / (1 - chance[~zero])
    np.testing.assert_allclose(found.positive.cells.drawn[:, 0], inside, atol=1e-9)


def test_one_position_per_person_is_shared_by_all_draws_and_independent_of_them():
    forecast, y = outcomes("count")
    r = jittered(N, 16, random_state=1)
    given = Audited(forecast.randomized(0.2, r=r), None)
    pits = read_subject(given, as_outcomes(y), np.random.default_rng(2)).cells
    wide = (pits.high - pits.low) > 1e-3
    position = np.where(wide, (pits.drawn - pits.low) / np.where(wide, pits.high - pits.low, 1), 0)
    first = np.array([row[use][0] for row, use in zip(position, wide, strict=True)])
    np.testing.assert_allclose(position[wide], np.repeat(first, wide.sum(axis=1)), atol=1e-9)
    # a false alarm of one in a million each
    assert stats.kstest(first, "uniform").pvalue > 1e-6
    assert abs(stats.spearmanr(first, r[:, 0]).statistic) < 5 / np.sqrt(N)


@pytest.mark.parametrize("kind", ["binary", "count"])
def test_estimates_average_over_the_positions_and_the_seed_moves_tests_alone(kind):
    forecast, y = outcomes(kind)
    other = audit(forecast, people(), y, groups=["sex"], **(QUICK | {"random_state": 1}))
    columns = ["error", "mean_pit", "bias"]
    # 0/1 outcomes have no useful intervals
    columns += [] if kind == "binary" else ["coverage_80", "coverage_90"]
    # groups of `everyone` and of either sex; errors of all rows are exact
    pd.testing.assert_frame_equal(audited(kind).groups[columns], other.groups[columns], rtol=1e-9)
    proofs = [found.certificate for found in (audited(kind), other)]
    assert len({proof.average_error() for proof in proofs if proof is not None}) == 2
    pd.testing.assert_frame_equal(audited(kind).calibration, other.calibration, rtol=1e-9)


@pytest.mark.parametrize("kind", ["binary", "hurdle"])
def test_pits_alone_give_the_same_estimates(kind):
    forecast, y = outcomes(kind)
    found = audit_pit(forecast.pit_interval(y), X=people(), groups=["sex"], **QUICK)
    # the cells of 0/1 outcomes determine their probabilities
    is_binary = kind == "binary"
    assert found.outcome_kind == (OutcomeKind.BINARY if is_binary else None)
    columns = ["n", "error", "mean_pit", "rate" if is_binary else "coverage_80"]
    ours = found.groups[columns]
    pd.testing.assert_frame_equal(ours, audited(kind).groups[columns], rtol=1e-9, atol=1e-12)


def test_scores_of_counts_and_of_hurdles_are_log_probabilities_of_atoms():
    _, y = outcomes("count")
    mean = people()["mean"].to_numpy()
    expected = -stats.poisson(mean).logpmf(y).mean()
    assert audited("count").score("log score") == pytest.approx(expected, rel=1e-9)
    grid = np.arange(60)
    below = stats.poisson(mean[:, None]).cdf(grid)
    crps = ((below - (y[:, None] <= grid)) ** 2).sum(axis=1).mean()
    assert audited("count").score("CRPS") == pytest.approx(crps, rel=1e-6)
    _, y = outcomes("hurdle")
    chance = people()["chance"].to_numpy()
    off = y != 0
    part = outcomes("hurdle")[0].positive_part().logpdf(np.where(off, y, 1.0))
    expected = -np.where(off, np.log1p(-chance) + part, np.log(chance)).mean()
    assert audited("hurdle").score("log score") == pytest.approx(expected, rel=1e-9)


def test_probabilities_of_zero_make_the_log_loss_infinite_and_nothing_else():
    _, y = outcomes("binary")
    told = np.where(np.arange(N) < 3, 1 - y, people()["chance"])
    found = audit(Forecast.from_probability(told), people(), y, groups=["sex"], **QUICK)
    assert found.score("log loss") == np.inf
    assert np.isfinite(found.score("Brier score"))
    assert found.to_dict()["scores"][0]["value"] is None
    (note,) = notes_of(found.notes, NoteKind.EXCLUDED_OUTCOMES)
    assert note.numbers == (3,)


def test_reliability_of_events_is_that_of_groups_by_probability():
    _, y = outcomes("binary")
    found, table = audited("binary").reliability, audited("binary").by_forecast
    p = people()["chance"].to_numpy()
    rank = (stats.rankdata(p) - 0.5) / N
    part = (5 * rank).astype(int)  # 800 rows: fifths of 160
    assert found["group"].unique().tolist() == [EVERYONE]
    assert table["n_parts"].tolist() == [5] * 5
    for column, values in (("n", np.ones(N)), ("probability", p), ("rate", y)):
        sums = np.bincount(part, values)
        expected = sums if column == "n" else sums / np.bincount(part)
        np.testing.assert_allclose(found[column], expected, rtol=1e-9)
    # their intervals are those of the family: five groups at 1.5% (verdict: 1)
    count, tail = found["rate"] * 160, 0.015 / (2 * 5)
    low = stats.beta.ppf(tail, count, 161 - count)
    high = stats.beta.isf(tail, count + 1, 160 - count)
    # ends are moved away where outcomes vary more than binomial ones do
    assert (found["low"] <= low + 1e-12).all()
    assert (found["high"] >= high - 1e-12).all()
    np.testing.assert_allclose(found["low"], low, atol=2e-3)
    np.testing.assert_allclose(found["high"], high, atol=2e-3)


def test_the_bias_of_a_group_without_an_event_has_an_upper_limit():
    forecast, y = Forecast.from_probability(np.full(400, 0.005)), np.zeros(400)
    found = audit(forecast, y=y, groups={"g": np.arange(400) < 200}, **QUICK)
    rows = found.groups.set_index("group")
    # no event in n trials: Clopper and Pearson; everyone has 3 of 5 points, the group 2
    for name, n, tail in ((EVERYONE, 400, 0.015), ("g", 200, 0.01)):
        limit = 1 - tail ** (1 / n) - 0.005
        assert rows.loc[name, "bias_high"] == pytest.approx(limit, rel=1e-6)
        assert rows.loc[name, "bias_low"] == pytest.approx(-0.005)


def test_named_groups_of_the_positive_part_are_those_of_its_pits():
    forecast, y = outcomes("hurdle")
    off = y != 0
    pits = forecast.positive_part()[off].pit(y[off])
    table = audited("hurdle").positive_part
    # everyone, groups by the forecast of the positive part, named groups
    assert table["group"][0] == EVERYONE
    assert table["group"].tolist()[-2:] == ["sex = f", "sex = m"]
    own = table.iloc[1:-2]
    assert own["key"].unique().tolist() == ["predicted mean"]
    assert own["n"].sum() == table["n"][0] == off.sum()
    assert table["error"][0] == pytest.approx(calibration_error(pits), rel=1e-9)
    # its mean rises with the mean that it is made of
    last = np.argsort(people()["mean"].to_numpy()[off])[-int(own["n"].iloc[-1]) :]
    assert own["error"].iloc[-1] == pytest.approx(calibration_error(pits[last]), rel=1e-9)
    women, of_women = (people()["sex"] == "f").to_numpy()[off], table.iloc[-2]
    assert of_women["error"] == pytest.approx(calibration_error(pits[women]), rel=1e-9)
    assert of_women["coverage_80"] == pytest.approx(covered(pits[women], 0.8).mean(), rel=1e-9)


def test_a_hurdle_whose_outcomes_are_all_the_atom_is_audited_without_a_certificate():
    forecast, _ = outcomes("hurdle")
    found = audit(forecast, people(), np.zeros(N), groups=["sex"], **QUICK)
    assert found.certificate is None
    (note,) = notes_of(found.notes, NoteKind.NO_CERTIFICATE)
    assert "every outcome is the atom" in str(note)
    assert found.positive_part.empty


def test_certificates_of_rounded_amounts_name_the_rounding():
    rng = np.random.default_rng(3)
    amounts = 1.5 + rng.normal(size=N)
    positive = Forecast.from_normal(np.full(N, 1.5), np.ones(N))
    forecast = Forecast.from_hurdle(np.full(N, 0.5), positive, at=-9.0)
    for values, is_rounded in ((amounts, False), (np.round(amounts), True)):
        y = np.where(rng.random(N) < 0.5, -9.0, values)
        proof = certify(forecast, y=y, random_state=0)
        assert ("rounding cells" in "; ".join(proof.assumptions)) is is_rounded
        # whole cells would cover 98% of the rounded amounts
        low, high = proof.coverage(0.8, 1.0)
        assert low < 0.8 < high < 0.9


def test_conditions_on_events():
    found = audited("binary")
    proof = found.certificate
    rate, bias = "certified_event_rate(0.1, 0.2) > 0.2", "certified_bias(0.5) > 0.2"
    assert judged(parse_condition(rate), found).value == proof.event_rate(below=0.1, mass=0.2)
    forecast, y = outcomes("binary")
    # what is true because there is no such group is no pass
    few = judged(parse_condition("certified_event_rate(0.01, 0.2) > 0.2"), found)
    share = (np.asarray(forecast.event_probability()) <= 0.01).mean()
    assert f"mass must be at most {share:.3g}, the share of people" in few.reason
    low, high = proof.bias(0.5)
    assert judged(parse_condition(bias), found).value == max(-low, high)
    for shift in (-0.3, 0.3):  # either side may be the larger one
        moved = np.clip(np.asarray(forecast.event_probability()) + shift, 0.01, 0.99)
        other = audit(Forecast.from_probability(moved), y=y, **QUICK)
        low, high = other.certificate.bias(0.5)
        assert (-low > high) == (shift > 0)
        assert judged(parse_condition(bias), other).value == max(-low, high)
    for text in (rate, bias):
        condition = judged(parse_condition(text), audited("count"))
        assert "and the outcome is count" in condition.reason
    refused("certified_bias", parse_condition, "certified_bias(0.1, 0.2) > 0.2")
    refused("below", parse_condition, "certified_event_rate(5, 0.2) > 0.2")


def in_parts(forecast, y, n_parts=3):
    """Return the audit of a sample with the counts of all rows, read in parts."""
    link = certify(forecast[:400], y=y[:400], random_state=0).link
    levels = (0.8, 0.9, *WIDER_LEVELS)
    plan = CountPlan((), levels, link=link)
    random = np.random.default_rng(0)
    total = None
    for rows in np.array_split(np.arange(N), n_parts):
        part = count_rows(forecast[rows], None, y[rows], people().iloc[rows], plan, random)
        total = part if total is None else total + part
    return audited_rows(forecast[:400], people()[:400], y[:400], counted=total, **QUICK).audit


@pytest.mark.parametrize("kind", ["binary", "count", "hurdle", "randomized hurdle"])
def test_tables_in_parts_are_certified_as_in_memory(kind):
    forecast, y = outcomes(kind.rsplit(maxsplit=1)[-1])
    if "randomized" in kind:
        forecast = forecast.randomized(0.15, r=jittered(N, 8, random_state=1))
    found, whole = in_parts(forecast, y), audit(forecast, people(), y, **QUICK)
    proof, expected = found.certificate, whole.certificate
    assert proof.kind is expected.kind
    assert found.outcome_kind == whole.outcome_kind
    # errors are taken at the upper ends of bins of 1/16384; with a link they widen by more
    most = 0.002 if kind == "randomized hurdle" else 1e-4
    for mass in (0.2, 0.5) if kind != "binary" else ():
        assert 0 <= proof.group_error(mass) - expected.group_error(mass) < most
        assert proof.coverage(0.8, mass) == pytest.approx(expected.coverage(0.8, mass), abs=most)
    if expected.events is not None:
        np.testing.assert_allclose(proof.bias(0.2), expected.bias(0.2), atol=2 / 6400)
        assert proof.event_rate(below=0.1, mass=0.2) >= expected.event_rate(below=0.1, mass=0.2)
    bias = whole.groups["bias"][0]
    assert found.groups["bias"][0] == pytest.approx(bias, rel=1e-6) or "randomized" in kind
    if kind == "binary":
        for end in ("bias_low", "bias_high"):
            assert found.groups[end][0] == pytest.approx(whole.groups[end][0], rel=1e-6)
        # event rates by probability, as in memory: PITs of 0/1 outcomes show none
        assert found.calibration["probability"].isin(forecast.event_probability()).all()
    if "randomized" not in kind:
        # averages over positions in the cells need no draw: they are those in memory
        assert found.groups["mean_pit"][0] == pytest.approx(whole.groups["mean_pit"][0])
        pd.testing.assert_frame_equal(found.histogram, whole.histogram, rtol=0, atol=1e-9)
    if kind in ("count", "hurdle"):
        assert found.groups["coverage_80"][0] == pytest.approx(whole.groups["coverage_80"][0])


def test_counts_of_a_part_without_the_atom_can_be_added():
    forecast, y = outcomes("hurdle")
    plan = CountPlan((), (0.8,))
    random = np.random.default_rng(0)
    parts = [
        count_rows(forecast[rows], None, y[rows], people()[rows], plan, random)
        for rows in (y == 0, y != 0)
    ]
    total = parts[0] + parts[1]
    assert total.counts.n_samples == N
    assert total.positive.n_samples == (y != 0).sum()
    assert total.events.n_events == (y != 0).sum()


def test_an_atom_at_an_end_is_open_off_a_grid():
    y = np.maximum(np.random.default_rng(0).normal(size=2000), -0.5)
    assert Rounding.of(y) == Rounding(None, (-0.5, np.inf))
    with pytest.warns(DiscreteOutcomeWarning):
        found = audit(Forecast.from_normal(np.zeros(2000), np.ones(2000)), y=y, **QUICK)
    # DKW bounds the W1 of uniform PITs, the truth behind censored outcomes; false alarm 1e-6
    assert found.score("average error") < np.sqrt(np.log(2e6) / 4000)
    assert found.rounding_step is None


def test_the_share_of_the_grid_is_what_other_positions_could_remove():
    y = np.round(np.random.default_rng(0).normal(2.0, 1.5, N))
    for shift in (0.0, 1.0):
        forecast = Forecast.from_normal(np.full(N, 2.0 + shift), np.full(N, 1.5))
        with pytest.warns(DiscreteOutcomeWarning):
            found = audit(forecast, y=y, **QUICK)
        peer = stats.norm(2.0 + shift, 1.5)
        ends = [np.where(y == y.min(), -np.inf, y - 0.5), np.where(y == y.max(), np.inf, y + 0.5)]
        share_of = {end: (y == end).mean() > 0.02 for end in (y.min(), y.max())}
        ends[0] = ends[0] if share_of[y.min()] else y - 0.5
        ends[1] = ends[1] if share_of[y.max()] else y + 0.5
        cells = Cells(peer.cdf(ends[0]), peer.cdf(ends[1]), ties=np.full(N, 0.5))
        error, least = calibration_error(cells), cell_error(cells)
        assert found.score("average error") == pytest.approx(error, rel=1e-9)
        assert found.grid_share == pytest.approx((error - least) / error, rel=1e-9)
        (note,) = notes_of(found.notes, NoteKind.ROUNDING_CELLS)
        values, counts = np.unique(y, return_counts=True)
        facts = (values[counts.argmax()], counts.max() / N, 1.0, found.grid_share)
        assert note.numbers == pytest.approx(facts)
        assert "of the average error" in str(note)
    # far beyond what rounding may explain
    assert found.grid_share < 0.9


def test_atoms_inside_the_range_and_off_a_grid_are_reported():
    random = np.random.default_rng(0)
    y = np.where(random.random(N) < 0.2, 0.0, random.normal(size=N))
    with pytest.warns(DiscreteOutcomeWarning):
        found = audit(Forecast.from_normal(np.zeros(N), np.ones(N)), y=y, **QUICK)
    (note,) = notes_of(found.notes, NoteKind.TIED_OUTCOMES)
    assert note.numbers == pytest.approx((0.0, (y == 0).mean()))
    assert found.grid_share is None


def test_rounded_amounts_of_a_hurdle_are_spread_over_cells_that_end_at_the_atom():
    forecast, exact = outcomes("hurdle")
    # one unit above zero is the least positive amount: rounding up never makes a zero
    y = np.where(exact == 0, 0.0, np.maximum(np.round(exact * 2) / 2, 0.5))
    found = read_subject(Audited(forecast, None), as_outcomes(y), np.random.default_rng(0))
    off = y != 0
    chance = people()["chance"].to_numpy()
    assert found.rounding.step == 0.5
    assert (found.cells.low[off, 0] >= chance[off] - 1e-12).all()
    np.testing.assert_allclose(found.cells.high[~off, 0], chance[~off], rtol=1e-12)
    part = forecast.positive_part().distribution
    some = off & (y > 0.5) & (y < y.max())
    expected = chance + (1 - chance) * part.cdf(y - 0.25)
    np.testing.assert_allclose(found.cells.low[some, 0], expected[some], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_audits_of_each_kind_fulfil_the_schema(kind):
    found = audited(kind)
    jsonschema.Draft202012Validator(audit_schema()).validate(json.loads(found.to_json()))


def test_audits_of_different_kinds_are_not_compared():
    refused("a binary outcome, count of a count", compare, *map(audited, KINDS[:2]))
    y = np.random.default_rng(0).normal(size=N)
    made = audit(Forecast.from_normal(np.zeros(N), np.ones(N)), people(), y, **QUICK)
    refused("a continuous outcome", compare, made, audited("count"))
