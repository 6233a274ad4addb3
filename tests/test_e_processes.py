"""E-processes: supermartingales by enumeration, Ville by simulation, exact states."""

import itertools
import json
import math

import numpy as np
import pytest

from evenhand.monitoring.e_processes import STAKES, EProcesses
from repeats import most_failures, repeats, statistical

# days with 2, 0, 1 and 3 rows
DAYS = (2, 0, 1, 3)


def run(bank, days):
    paths = []
    for rows in days:
        bank.begin_period()
        paths.append(bank.update(rows))
    return np.concatenate(paths)


def through_json(bank):
    made = EProcesses(bank.low, bank.bound)
    made.restore(json.loads(json.dumps(bank.to_state(), allow_nan=False)))
    return made


def evidence_by_definition(days, low, bound):
    """Mean over start periods and stakes of products, written as in outcomes: 6."""
    total = 0.0
    last = len(days)
    for start in range(1, last + 1):
        for share in STAKES:
            product = 1.0
            for rows in days[start - 1 :]:
                for x in rows:
                    product *= 1 + share / (bound - low) * (x - bound)
            total += product / (start * (start + 1) * len(STAKES))
    return math.log(total + 1 / (last + 1))


def two_point_days(values):
    parts = np.split(np.asarray(values, dtype=float), np.cumsum(DAYS)[:-1])
    return [part[:, None] for part in parts]


def test_evidence_is_the_mixture_over_start_periods_and_stakes():
    rng = np.random.default_rng(1)
    days = [rng.uniform(-1, 2, size=n) for n in (3, 0, 2, 5, 1)]
    bank = EProcesses([-1.0], [0.2])
    path = run(bank, [day[:, None] for day in days])
    assert bank.log_evidence[0] == pytest.approx(evidence_by_definition(days, -1.0, 0.2), abs=1e-12)
    assert path[2, 0] == pytest.approx(evidence_by_definition(days[:1], -1.0, 0.2), abs=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "bound"), [(0.0, 1.0, 0.3), (-0.5, 0.5, 0.02), (0.0, 1.0, 0.004)]
)
def test_the_mean_of_evidence_is_1_and_no_stopping_rule_gains(low, high, bound):
    # all paths of a two-point distribution with mean `bound`; the best rule by backward induction
    chance = (bound - low) / (high - low)
    n = sum(DAYS)
    means = np.zeros(n)
    paths = {}
    for bits in itertools.product((0, 1), repeat=n):
        values = np.where(bits, high, low)
        path = np.exp(run(EProcesses([low], [bound]), two_point_days(values))[:, 0])
        means += math.prod(chance if bit else 1 - chance for bit in bits) * path
        paths.update({bits[:k]: path[k - 1] for k in range(1, n + 1)})
    np.testing.assert_allclose(means, 1.0, rtol=1e-9)
    best = paths
    for k in range(n - 1, 0, -1):
        best = {
            bits: max(paths[bits], chance * best[(*bits, 1)] + (1 - chance) * best[(*bits, 0)])
            for bits in itertools.product((0, 1), repeat=k)
        }
    assert chance * best[(1,)] + (1 - chance) * best[(0,)] == pytest.approx(1.0, rel=1e-9)


def below(rng, runs, rows):
    """Several null distributions at their boundary: bounds and values (rows, runs)."""
    coin = (0.5, rng.integers(0, 2, size=(rows, runs)).astype(float))
    rare = (0.01, (rng.uniform(size=(rows, runs)) < 0.01).astype(float))
    smooth = (0.5, rng.uniform(size=(rows, runs)))
    # atoms at 0 and 1 and a continuous part, mean (0 + 2 * 1/2 + 1) / 4
    atoms = (
        0.5,
        np.choose(rng.integers(0, 4, size=(rows, runs)), [0.0, 1.0, smooth[1], smooth[1]]),
    )
    # the distribution depends on the past: its mean does not
    width = np.where(np.vstack((np.zeros((1, runs)), smooth[1][:-1])) > 0.5, 0.5, 0.05)
    bent = (0.5, 0.5 + width * rng.choice([-1.0, 1.0], size=(rows, runs)))
    return {"coin": coin, "rare": rare, "smooth": smooth, "atoms": atoms, "past": bent}


@statistical
@pytest.mark.parametrize("kind", ["coin", "rare", "smooth", "atoms", "past"])
def test_false_alarms_at_the_boundary_are_at_most_as_promised(kind):
    runs = repeats(2000)
    bound, values = below(np.random.default_rng(20), runs, 2000)[kind]
    bank = EProcesses(np.zeros(runs), np.full(runs, bound))
    largest = np.zeros(runs)
    for rows in np.split(values, 200):
        bank.begin_period()
        largest = np.maximum(largest, bank.update(rows).max(axis=0))
    for risk in (0.05, 0.2):
        assert (largest >= -math.log(risk)).sum() <= most_failures(runs, risk)


def test_any_split_of_rows_into_calls_gives_identical_numbers():
    rng = np.random.default_rng(3)
    low = np.array([0.0, -0.5, 0.0])
    bound = np.array([0.1, 0.02, 0.003])
    days = [np.maximum(rng.normal(0.1, 0.2, size=(n, 3)), low) for n in (40, 1, 0, 17)]
    whole = EProcesses(low, bound)
    path = run(whole, days)
    for split in range(5):
        parts = EProcesses(low, bound)
        found = []
        for rows in days:
            parts.begin_period()
            cuts = np.sort(rng.integers(0, len(rows) + 1, size=3 * split))
            found += [parts.update(part) for part in np.split(rows, cuts)]
            # between calls the state may travel through JSON
            parts = through_json(parts)
        np.testing.assert_array_equal(np.concatenate(found), path)
        assert parts.to_state() == whole.to_state()
        np.testing.assert_array_equal(parts.log_evidence, whole.log_evidence)
        np.testing.assert_array_equal(parts.since, whole.since)


def test_rows_without_a_value_do_not_count():
    rng = np.random.default_rng(5)
    values = rng.uniform(size=(30, 1))
    skip = rng.uniform(size=(30, 1)) < 0.5
    kept = run(EProcesses([0.0], [0.3]), [values[~skip[:, 0]]])
    masked = run(EProcesses([0.0], [0.3]), [np.where(skip, np.nan, values)])
    assert masked[-1, 0] == pytest.approx(kept[-1, 0], abs=1e-12)


@pytest.mark.parametrize("x", [0.0, 1.0])
def test_three_thousand_days_do_not_overflow(x):
    bank = EProcesses([0.0], [0.05])
    for _ in range(3000):
        bank.begin_period()
        assert np.isfinite(bank.update(np.full((50, 1), x))).all()
    # constant values: the mixture is dominated by the best stake from day 1, or by later starts
    if x == 1.0:
        best = 3000 * 50 * math.log1p(STAKES[-1] / 0.05 * 0.95)
        assert bank.log_evidence[0] == pytest.approx(best, rel=1e-4)
    else:
        assert -math.log(3001) - 1e-9 < bank.log_evidence[0] < 0
    assert through_json(bank).to_state() == bank.to_state()


def test_since_by_brute_force():
    rng = np.random.default_rng(7)
    low, bound = -0.5, 0.1
    days = [rng.uniform(-0.5, 0.75, size=n) for n in (2, 4, 3, 1, 6, 2)]
    bank = EProcesses([low], [bound])
    run(bank, [day[:, None] for day in days])
    gains = {
        (start, share): sum(
            math.log1p(share / (bound - low) * (x - bound))
            for rows in days[start - 1 :]
            for x in rows
        )
        for start in range(1, len(days) + 1)
        for share in STAKES
    }
    assert bank.since[0] == max(gains, key=gains.get)[0]
