"""Tests of promises for every group: theory, and validity by simulation."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

from complaints import refused
from evenhand.certificates import Envelope, Promise
from evenhand.links import Entropic
from evenhand.monitoring import Rows, Watch
from evenhand.monitoring.e_processes import EProcesses
from evenhand.monitoring.statements import (
    QuantileCells,
    ValueCounts,
    kept_envelope,
    kept_promise,
    mean_gap,
    promise_values,
)
from repeats import most_failures, repeats, statistical

LINK = Entropic(0.12)
MASS = 0.2


class Evidence:
    """Evidence against statements, one for each side, with the values of a promise."""

    def __init__(self, found):
        is_envelope = isinstance(found, Envelope)
        self.statements = kept_envelope(found) if is_envelope else kept_promise(found)
        self.banks = [EProcesses(one.low, one.bound) for one in self.statements]
        self.values = None if is_envelope else ValueCounts(found)
        self.promise = found

    def begin_period(self):
        for part in [*self.banks, self.values]:
            if part is not None:
                part.begin_period()

    def update(self, rows):
        """Log evidence of each side after each row, (n, n_sides)."""
        pairs = list(zip(self.statements, self.banks, strict=True))
        path = [one.log_evidence(bank.update(one.values(rows))) for one, bank in pairs]
        if self.values is not None:
            value, covered = promise_values(self.promise, rows)
            self.values.add(value[covered])
        return np.concatenate(path, axis=-1)

    @property
    def log_evidence(self):
        pairs = zip(self.statements, self.banks, strict=True)
        return np.concatenate([one.log_evidence(bank.log_evidence[None])[0] for one, bank in pairs])

    @property
    def since(self):
        pairs = zip(self.statements, self.banks, strict=True)
        return [int(bank.since[one.decisive(bank.log_evidence)[0]]) for one, bank in pairs]

    def estimates(self, since=1):
        return SimpleNamespace(**self.values.estimates(since))


def rows_of(u, known=None, **others):
    """Rows with base PITs `u`; those of unknown rows are removed."""
    low, high = u if isinstance(u, tuple) else (u, u)
    known = np.full(low.shape, True) if known is None else known
    cells = (np.where(known, low, np.nan), np.where(known, high, np.nan))
    return Rows(np.zeros(known.shape, "datetime64[us]"), known, cells, base=cells, **others)


def rows_with(x, known=None):
    """Rows whose mean served PITs minus 1/2 are `x`."""
    low, high = np.zeros(np.shape(x)), np.ones(np.shape(x))
    for _ in range(60):
        middle = (low + high) / 2
        is_below = LINK.mean_pit(middle) < np.asarray(x) + 0.5
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return rows_of(high, known)


def cvar(x, mass):
    levels = np.sort(x)[::-1]
    upto = np.minimum(np.arange(1, levels.size + 1) / levels.size, mass)
    return float(np.diff(upto, prepend=0.0) @ levels / mass)


def test_cells_have_the_mean_served_pit_of_random_positions():
    # atoms: served cell [H(l), H(u)], a uniform position in it
    rng = np.random.default_rng(2)
    low = rng.uniform(0, 0.8, size=20)
    high = low + rng.uniform(0, 0.2, size=20)
    promise = Promise("mean_pit", MASS, 0.25, 0.95, LINK)
    values, covered = promise_values(promise, rows_of((low, high)))
    assert covered.all()
    r = (np.arange(4000) + 0.5) / 4000
    served = (LINK.ppf(low[:, None], r) + LINK.ppf(high[:, None], r)) / 2
    np.testing.assert_allclose(values, served.mean(axis=-1) - 0.5, atol=1e-4)


def test_gaps_are_means_over_positions_in_the_cell():
    position = (np.arange(20000) + 0.5) / 20000
    low = np.array([0.2, 0.2, 0.2, 0.5])
    high = np.array([0.6, 0.6, 0.6, 0.5])
    r = np.array([0.1, 0.3, 0.9, 0.75])
    within = low[:, None] + (high - low)[:, None] * position
    expected = np.abs(within - r[:, None]).mean(axis=-1)
    np.testing.assert_allclose(mean_gap((low, high), r), expected, atol=1e-8)


@pytest.mark.parametrize("mass", [0.05, 0.2, 0.7, 1.0])
def test_cells_cover_every_null_hypothesis(mass):
    # a sample with CVaR = target has a mean ratio of at most 1 in some cell, a larger one in none
    rng = np.random.default_rng(4)
    for _ in range(200):
        x = rng.choice([rng.beta(*rng.uniform(0.1, 3, size=2), size=30) - 0.5])
        x = np.where(rng.uniform(size=30) < 0.3, rng.uniform(-0.5, 0.5), x)
        # an atom at the target itself must not exceed it by rounding
        target = cvar(x, mass) + 1e-9
        if target <= -0.45:
            continue
        assert QuantileCells.of(target, mass, -0.5).ratios(x).mean(axis=0).min() <= 1 + 1e-9
        margin = 0.9 * target - 0.05
        if -0.45 < margin < target:
            assert QuantileCells.of(margin, mass, -0.5).ratios(x).mean(axis=0).min() > 1


DAYS = 365
PEOPLE = 10
TARGET = 0.25


def spread_for(target):
    """Standard deviation of normal scores at which both sides of the mean PIT have this CVaR."""
    scores = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)

    def excess(scale):
        return cvar(LINK.mean_pit(stats.norm.cdf(scale * scores)) - 0.5, MASS) - target

    return optimize.brentq(excess, 0.5, 3.0)


SPREAD = spread_for(TARGET)


def smooth(rng, shape):
    return LINK.mean_pit(stats.norm.cdf(SPREAD * rng.normal(size=shape))) - 0.5


def three_points(top, rng, shape):
    chance = MASS * TARGET / top
    return top * rng.choice([-1.0, 0.0, 1.0], p=[chance, 1 - 2 * chance, chance], size=shape)


def atoms(rng, shape):
    return three_points(0.5, rng, shape)


def mixed_days(rng, shape):
    # every day another distribution, all served by q = 0
    return three_points(rng.uniform(TARGET + 0.01, 0.5), rng, shape)


def false_alarms(draw, runs, seed):
    """Runs with an alarm on either side at the level of 5%, read after every row."""
    rng = np.random.default_rng(seed)
    cells = QuantileCells.of(TARGET, MASS, -0.5)
    n_processes = runs * cells.left.size
    banks = [EProcesses(np.zeros(n_processes), np.ones(n_processes)) for _ in range(2)]
    has_alarm = np.zeros(runs, dtype=bool)
    for _ in range(DAYS):
        x = draw(rng, (PEOPLE, runs))
        for sign, bank in zip((1, -1), banks, strict=True):
            bank.begin_period()
            path = bank.update(cells.ratios(sign * x).reshape(PEOPLE, -1))
            least = path.reshape(PEOPLE, runs, -1).min(axis=-1).max(axis=0)
            has_alarm |= least >= math.log(2 / 0.05)
    return int(has_alarm.sum())


@statistical
@pytest.mark.parametrize(("draw", "runs"), [(smooth, 400), (atoms, 200), (mixed_days, 200)])
def test_false_alarms_within_a_year_at_the_boundary_are_at_most_as_promised(draw, runs):
    runs = repeats(runs)
    assert false_alarms(draw, runs, 50) <= most_failures(runs, 0.05)


@statistical
def test_simulated_processes_are_those_of_a_promise_test():
    # the simulation above and the class give the same evidence
    x = smooth(np.random.default_rng(5), (PEOPLE * 3, 1))[:, 0]
    test = Evidence(Promise("mean_pit", MASS, TARGET, 0.95, LINK))
    cells = QuantileCells.of(TARGET, MASS, -0.5)
    bank = EProcesses(np.zeros(cells.left.size), np.ones(cells.left.size))
    for rows in np.split(x, 3):
        test.begin_period()
        bank.begin_period()
        found = test.update(rows_with(rows))[:, 0]
        np.testing.assert_allclose(found, bank.update(cells.ratios(rows)).min(axis=-1), atol=1e-6)


def test_a_missing_outcome_gives_no_more_evidence_than_any_value():
    rng = np.random.default_rng(8)
    promise = Promise("mean_pit", MASS, TARGET, 0.95, LINK)
    x = rng.uniform(-0.5, 0.5, size=60)
    known = rng.uniform(size=60) < 0.7

    def path(values, known=None):
        test = Evidence(promise)
        test.begin_period()
        return test.update(rows_with(values, known))

    with_gaps = path(x, known)
    for value in (-0.5, -0.1, 0.3, 0.5):
        assert (with_gaps <= path(np.where(known, x, value)) + 1e-9).all()


def test_estimates_are_means_of_the_worst_share_with_limits_for_missing_outcomes():
    rng = np.random.default_rng(9)
    x = rng.uniform(-0.5, 0.3, size=5000)
    known = rng.uniform(size=5000) < 0.9
    test = Evidence(Promise("mean_pit", MASS, TARGET, 0.95, LINK))
    assert test.estimates().estimate is None
    test.begin_period()
    test.update(rows_with(x, known))
    found = test.estimates()
    assert (found.n, found.n_missing) == (known.sum(), (~known).sum())
    assert found.direction == "lower"
    assert found.estimate == pytest.approx(cvar(-x[known], MASS), abs=5e-4)
    assert found.best_case == pytest.approx(cvar(np.where(known, -x, -0.5), MASS), abs=5e-4)
    assert found.worst_case == pytest.approx(cvar(np.where(known, -x, 0.5), MASS), abs=5e-4)


def test_estimates_of_recent_periods_leave_out_at_most_half_of_the_time():
    rng = np.random.default_rng(15)
    test = Evidence(Promise("mean_pit", MASS, TARGET, 0.95, LINK))
    by_day = rng.uniform(-0.5, 0.5, size=(101, 20)) + np.linspace(0, 0.3, 101)[:, None]
    by_day = np.clip(by_day, -0.5, 0.5)
    known = rng.uniform(size=by_day.shape) < 0.9
    for day in range(1, 101):
        test.begin_period()
        test.update(rows_with(by_day[day], known[day]))
    for since in (1, 2, 37, 60, 90, 99, 100):
        found = test.estimates(since)
        assert since <= found.since <= 100 - (100 - since) // 2
        x, some = by_day[found.since : 101].ravel(), known[found.since : 101].ravel()
        assert (found.n, found.n_missing) == (some.sum(), (~some).sum())
        assert found.estimate == pytest.approx(cvar(x[some], MASS), abs=6e-4)
        assert found.worst_case == pytest.approx(cvar(np.where(some, x, 0.5), MASS), abs=6e-4)
    assert test.estimates(1).since == 1
    # two blocks of each power of two
    assert len(json.dumps(test.values.to_state())) < 14 * 1000 * 4


def test_rows_that_a_promise_does_not_cover_count_only_if_their_outcome_is_missing():
    rng = np.random.default_rng(10)
    x = rng.uniform(-0.5, 0.5, size=40)
    promised = rng.uniform(size=40) < 0.5
    known = rng.uniform(size=40) < 0.8
    promise = Promise("mean_pit", MASS, TARGET, 0.95, LINK)
    test, other = Evidence(promise), Evidence(promise)
    for one, kept in ((test, slice(None)), (other, promised | ~known)):
        one.begin_period()
        some = rows_with(x[kept], known[kept])
        mask = promised[kept] if one is test else None
        one.update(Rows(some.time, some.known, some.pit, base=some.base, promised=mask))
    np.testing.assert_allclose(test.log_evidence, other.log_evidence, atol=1e-9)
    assert test.estimates() == other.estimates()


def test_a_watch_with_an_alarm_estimates_the_worst_group_since_the_change():
    # over a year the worst fifth keeps the promise, since the change it does not
    rng = np.random.default_rng(16)
    n = 40 * 200
    day = np.repeat(np.arange(200), 40)
    u = stats.norm.cdf(rng.normal(size=n) + 0.7 * (day >= 180))
    time = np.datetime64("2026-01-01") + day.astype("timedelta64[D]")
    watch = Watch(Promise("mean_pit", MASS, 0.236, 0.95, LINK))
    watch.update(Rows(time, np.full(n, True), (u, u), base=(u, u)))
    found = watch.to_dict()["promise"]
    assert found["estimate"] < 0.236 < found["recent"]["estimate"]
    # 30 June is the first day of the change
    assert "2026-06-28" <= found["recent"]["since"] <= "2026-07-09"
    since = np.flatnonzero(time >= np.datetime64(found["recent"]["since"]))[0]
    expected = cvar(LINK.mean_pit(u[since:]) - 0.5, MASS)
    assert found["recent"]["estimate"] == pytest.approx(expected, abs=6e-4)
    recent = f"; {100 * found['recent']['estimate']:.1f} from "
    assert recent in " ".join(watch.summary().split())
    calm = Watch(Promise("mean_pit", MASS, 0.236, 0.95, LINK))
    calm.update(
        Rows(time[: n // 2], np.full(n // 2, True), (u[: n // 2],) * 2, base=(u[: n // 2],) * 2)
    )
    assert calm.to_dict()["promise"]["recent"] is None
    assert "; " not in calm.summary().partition("Worst group")[2].partition("No alarm")[0]


BOTH = Promise.of_bias(-0.1, 0.5, mass=MASS, confidence=0.95)


def bias_evidence(rng, above, below, days=60):
    """Most evidence of each side if the worst fifths have these mean biases, above and below."""
    test = Evidence(BOTH)
    most = np.zeros(2)
    for _ in range(days):
        test.begin_period()
        kind = rng.uniform(size=20)
        # a certain probability where there is no bias, so that the worst fifth is known
        p = np.where(kind < MASS, 1 - above, np.where(kind > 1 - MASS, below, 0.0))
        event = kind < MASS
        low = np.zeros(20)
        path = test.update(
            Rows(np.zeros(20, "datetime64[us]"), np.full(20, True), (low, low), excess=event - p)
        )
        most = np.maximum(most, path.max(axis=0))
    return most, test


@statistical
def test_each_side_of_a_bias_has_its_own_bound_and_is_silent_there():
    runs = repeats(80)
    rng = np.random.default_rng(21)
    found = np.array([bias_evidence(rng, 0.5, 0.1)[0] for _ in range(runs)])
    assert (found >= math.log(40)).any(axis=-1).sum() <= most_failures(runs, 0.05)


def test_a_break_of_the_tighter_side_is_found():
    (higher, lower), test = bias_evidence(np.random.default_rng(22), 0.5, 0.3, days=90)
    assert lower > math.log(40) > higher
    found = test.estimates()
    assert found.direction == "lower"
    assert found.estimate == pytest.approx(0.3, abs=0.05)


def test_the_envelope_reports_the_side_of_a_tail_that_is_too_heavy():
    rng = np.random.default_rng(13)
    envelope = Envelope(low=((0.05, 0.07), (0.2, 0.24)), high=((0.05, 0.07), (0.2, 0.24)))
    test = Evidence(envelope)
    for day in range(1, 61):
        test.begin_period()
        u = stats.norm.cdf(rng.normal(size=50) + (0.7 if day > 40 else 0.0))
        assert test.update(rows_of(u)).shape == (50, 2)
    higher, lower = test.log_evidence
    assert higher > math.log(40) > lower
    assert abs(int(test.since[0]) - 41) <= 3


def test_an_envelope_counts_shares_of_cells_and_no_missing_outcomes():
    envelope = Envelope(low=((0.1, 0.2),), high=((0.1, 0.2),))
    bank = EProcesses([0.0, 0.0], [0.2, 0.2])
    bank.begin_period()
    # high tail: share above 0.9; low tail: share below 0.1
    expected = bank.update([[0.5, 0.0], [0.0, 1.0], [0.0, 0.0]])
    test = Evidence(envelope)
    test.begin_period()
    low, high = np.array([0.8, 0.1, 0.0]), np.array([1.0, 0.1, 0.05])
    found = test.update(rows_of((low, high), np.array([True, True, False])))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_promise_of_gaps_needs_a_draw_for_each_outcome():
    test = Evidence(Promise("gap", MASS, TARGET, 0.95))
    test.begin_period()
    pit = np.full(2, 0.5)
    rows = Rows(
        np.zeros(2, "datetime64[us]"), np.full(2, True), (pit, pit), np.array([0.5, np.nan])
    )
    refused(r"r\[1\] is missing: the promise is about draws", test.update, rows)


@statistical
def test_false_notices_of_an_envelope_at_its_bounds_are_at_most_as_many_as_allowed():
    runs = repeats(200)
    rng = np.random.default_rng(14)
    bounds = tuple((t, t) for t in (0.05, 0.1, 0.2))
    n_alarms = 0
    for _ in range(runs):
        test = Evidence(Envelope(bounds, bounds))
        largest = -math.inf
        for _ in range(100):
            test.begin_period()
            largest = max(largest, float(test.update(rows_of(rng.uniform(size=20))).max()))
        n_alarms += largest >= math.log(40)
    assert n_alarms <= most_failures(runs, 0.05)
