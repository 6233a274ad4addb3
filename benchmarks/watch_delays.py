"""False alarms and delays of a watch over served forecasts, compared with repeated z-tests.

The first tables reproduce those of the specification (outcomes: 6), whose numbers stand in
brackets. There a promise about mean pathwise errors is watched at one quantile that was certified,
by e-processes with a prior over start days and by three other methods. Below them is the test of
`evenhand.Watch`: the promise about mean served PITs, for all quantiles, on two sides, each at half
of the risk. An oracle that knows the quantile and the side shows what that costs. The last tables
are those of a named group, of deterministic forecasts and under a link.

    OMP_NUM_THREADS=1 python benchmarks/watch_delays.py [--runs 200]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from evenhand.calibration import cvar
from evenhand.links import Entropic
from evenhand.monitoring.e_processes import STAKES, EProcesses
from evenhand.monitoring.statements import QuantileCells, averaged_witnesses

Values = np.ndarray
Change = Callable[[Values, np.random.Generator], Values]

LINK, MASS, RISK = Entropic(0.12), 0.2, 0.05
PEOPLE, DAYS, CHANGE_DAY = 50, 365, 100
GROUP_PEOPLE, N_GROUPS, TOLERANCE = 20, 10, 0.02
SHOCKS = (0.1, 0.2, 0.3)
WINDOW = 30
"""Days of the z-test over the last days."""

SCORES = np.linspace(-9.0, 9.0, 6001)
"""Normal scores at which errors and mean PITs are tabulated; linear interpolation between them."""


def shifted(size: float, share: float = 1.0) -> Change:
    """Return a change that adds `size` standard deviations to the outcomes of a share of people."""

    def change(score: Values, rng: np.random.Generator) -> Values:
        return score + size * (rng.uniform(size=score.shape) < share)

    return change


def spread(factor: float) -> Change:
    """Return a change that multiplies the spread of all outcomes."""
    return lambda score, rng: factor * score


CHANGES: dict[str, tuple[Change, str]] = {
    "all shift 1.0 sd": (shifted(1.0), "4 / 6, 33 / 38, 28 / 32, 8 / 10"),
    "20% shift 1.5 sd": (shifted(1.5, 0.2), "24 / 41, 115 / 139, 87 / 108, 18 / 22"),
    "all shift 0.5 sd": (shifted(0.5), "52% found, 0%, 3%, 40 / 83"),
}
"""Changes of the first tables, with the delays of the specification."""

GROUP_CHANGES: dict[str, tuple[Change, str]] = {
    "shift 0.25 sd": (shifted(0.25), "53 / 77"),
    "shift 0.5 sd": (shifted(0.5), "12 / 16"),
    "shift 1.0 sd": (shifted(1.0), "6 / 6"),
    "spread by 0.7": (spread(0.7), "23 / 29"),
    "spread by 1.5": (spread(1.5), "24 / 35"),
}


class Tables(NamedTuple):
    """Mean served PIT minus 1/2, and pathwise error, at `SCORES`."""

    mean_pit: Values
    error: Values

    @classmethod
    def make(cls) -> Tables:
        """Compute both, in pieces: errors need much memory."""
        u = special.ndtr(SCORES)
        error = np.concatenate([LINK.pathwise_error(part) for part in np.array_split(u, 60)])
        return cls(LINK.mean_pit(u) - 0.5, error)

    def errors(self, score: Values) -> Values:
        """Pathwise errors of people with these normal scores of their outcomes."""
        return np.interp(score, SCORES, self.error)

    def mean_pits(self, score: Values) -> Values:
        """Mean served PITs minus 1/2."""
        return np.interp(score, SCORES, self.mean_pit)


def population(change: Change | None = None, n: int = 400_000) -> Values:
    """Return evenly spread normal scores of outcomes, after a change if there is one."""
    score = special.ndtri((np.arange(n) + 0.5) / n)
    return score if change is None else change(score, np.random.default_rng(0))


def days(
    runs: int, n_days: int, people: int, change: Change | None, seed: int
) -> Iterator[tuple[int, Values]]:
    """Yield each day, from 1, with scores of the shape (people, runs)."""
    rng = np.random.default_rng(seed)
    for day in range(1, n_days + 1):
        score = rng.normal(size=(people, runs))
        yield day, score if change is None or day <= CHANGE_DAY else change(score, rng)


class WeightedStart:
    """E-processes with a prior over start days, the least over cells of each run."""

    def __init__(self, runs: int, n_cells: int, low: float = 0.0, bound: float = 1.0) -> None:
        self.shape = (runs, n_cells)
        n = runs * n_cells
        self.processes = EProcesses(np.full(n, low), np.full(n, bound))

    def largest(self, day: int, values: Values) -> Values:
        """Add a day of values, (people, runs, n_cells); the largest log evidence after a row."""
        self.processes.begin_period()
        path = self.processes.update(values.reshape(len(values), -1))
        return path.reshape(-1, *self.shape).min(axis=-1).max(axis=0)


class OneProduct:
    """Mean over stakes of products from day 1 on, read after every row."""

    def __init__(self, runs: int) -> None:
        self.logs = np.zeros((len(STAKES), runs))

    def largest(self, day: int, values: Values) -> Values:
        """Add a day of values with mean 1 under the null, (people, runs)."""
        gains = np.log1p(np.array(STAKES)[:, None, None] * (values - 1.0))
        path = self.logs[:, None, :] + np.cumsum(gains, axis=-2)
        self.logs = path[:, -1, :]
        return special.logsumexp(path, axis=0).max(axis=0) - math.log(len(STAKES))


class DailyZ:
    """One-sided z-test that the mean exceeds 1, at the end of each day, of all or of recent days.

    Returns the z-value as evidence; its threshold is the normal quantile.
    """

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.sums: list[tuple[int, Values, Values]] = []

    def largest(self, day: int, values: Values) -> Values:
        """Add a day of values with mean 1 under the null, (people, runs)."""
        excess = values - 1.0
        self.sums.append((len(values), excess.sum(axis=0), (excess**2).sum(axis=0)))
        recent = self.sums if self.window is None else self.sums[-self.window :]
        n = sum(one[0] for one in recent)
        total, squares = (sum(one[i] for one in recent) for i in (1, 2))
        deviation = np.sqrt(np.maximum(squares / n - (total / n) ** 2, 1e-12))
        return total / math.sqrt(n) / deviation


class Delays(NamedTuple):
    """First days of alarm of several methods, (n_methods, runs); infinity without an alarm."""

    first: Values

    def alarms(self, method: int) -> str:
        """Share of the runs with an alarm."""
        return f"{np.isfinite(self.first[method]).mean():.1%}"

    def delay(self, method: int) -> str:
        """Median and 90% quantile of the delay, of the runs without an alarm before the change."""
        first = self.first[method]
        after = first[first > CHANGE_DAY] - CHANGE_DAY
        if after.size == 0:
            return "all early"
        found = np.isfinite(after).mean()
        early = "" if after.size == first.size else f" (early {1 - after.size / first.size:.0%})"
        if found < 0.5:
            return f"{found:.0%} found{early}"
        half, most = np.quantile(after, (0.5, 0.9), method="higher")
        shown = "-" if np.isinf(most) else f"{most:.0f}"
        return f"{half:.0f} / {shown}{early}"


def first_alarms(
    methods: list[tuple[Callable[[int, Values], Values], float]],
    stream: Iterator[tuple[int, Values]],
    runs: int,
) -> Delays:
    """Run methods, each with its threshold, until all have an alarm in all runs."""
    first = np.full((len(methods), runs), np.inf)
    for day, score in stream:
        for place, (largest, threshold) in enumerate(methods):
            if np.isinf(first[place]).any():
                reached = largest(day, score) >= threshold
                first[place, reached & np.isinf(first[place])] = day
        if np.isfinite(first).all():
            break
    return Delays(first)


def four_methods(
    tables: Tables, q: float, target: float, runs: int
) -> list[tuple[Callable[[int, Values], Values], float]]:
    """Return the methods of the specification, for mean pathwise errors at one quantile."""
    weighted, product = WeightedStart(runs, 1), OneProduct(runs)
    always, recent = DailyZ(), DailyZ(WINDOW)

    def ratio(score: Values) -> Values:
        return np.maximum(tables.errors(score) - q, 0.0) / (MASS * (target - q))

    level, normal = -math.log(RISK), -float(special.ndtri(RISK))
    return [
        (lambda day, score: weighted.largest(day, ratio(score)[..., None]), level),
        (lambda day, score: product.largest(day, ratio(score)), level),
        (lambda day, score: always.largest(day, ratio(score)), normal),
        (lambda day, score: recent.largest(day, ratio(score)), normal),
    ]


def pathwise(tables: Tables, runs: int) -> None:
    """Print false alarms and delays of the promise about mean pathwise errors at one quantile."""
    errors = tables.errors(population())
    q = float(np.quantile(errors, 1 - MASS))
    truth = cvar(errors, MASS)
    print(
        f"{LINK}; {PEOPLE} people a day, {DAYS} days, change after day {CHANGE_DAY}, risk {RISK:g};"
    )
    print("median / 90% delay in days; read after every row, z-tests daily")
    print()
    print(f"mean pathwise error of at most 0.30 in every group of {MASS:g}, {truth:.3f} before the")
    print(f"change; at one quantile, {q:.3f}; {runs} runs (specification in brackets)")
    names = ("weighted start", "one product", "z, all days", f"z, last {WINDOW}")
    print(f"{'':36s}" + "".join(f"{name:>16s}" for name in names))
    stream = days(runs, DAYS, PEOPLE, None, 1)
    found = first_alarms(four_methods(tables, q, truth, runs), stream, runs)
    shares = "".join(f"{found.alarms(i):>16s}" for i in range(4))
    print(f"{'false alarms in a year, at the null':36s}{shares}   (1.5%, 1.5%, 21.5%, 79.5%)")
    for name, (change, expected) in CHANGES.items():
        after = cvar(tables.errors(population(change)), MASS)
        stream = days(runs, DAYS, PEOPLE, change, 2)
        found = first_alarms(four_methods(tables, q, 0.30, runs), stream, runs)
        delays = "".join(f"{found.delay(i):>16s}" for i in range(4))
        label = f"{name} ({after:.3f})"
        print(f"{label:36s}{delays}   ({expected})", flush=True)


def both_sides(
    tables: Tables, target: float, runs: int
) -> tuple[Callable[[int, Values], Values], float]:
    """Return the test of a watch: all quantiles, two sides at half of the risk each."""
    cells = QuantileCells.of(target, MASS, -0.5)
    sides = [(sign, WeightedStart(runs, cells.left.size)) for sign in (1, -1)]

    def largest(day: int, score: Values) -> Values:
        x = tables.mean_pits(score)
        return np.maximum(*(side.largest(day, cells.ratios(sign * x)) for sign, side in sides))

    return largest, math.log(2 / RISK)


def oracle(
    tables: Tables, q: float, target: float, runs: int
) -> tuple[Callable[[int, Values], Values], float]:
    """Return the test at one quantile of one side, which nobody knows before the change."""
    weighted = WeightedStart(runs, 1)

    def largest(day: int, score: Values) -> Values:
        x = tables.mean_pits(score)
        return weighted.largest(day, np.maximum(x - q, 0.0)[..., None] / (MASS * (target - q)))

    return largest, -math.log(RISK)


def best_quantile(x: Values, right: Values, target: float) -> float:
    """Return the quantile at which the excess is largest among those that the right base allows."""

    def excess(values: Values, q: float) -> float:
        return float(np.maximum(values - q, 0.0).mean() / (MASS * (target - q)))

    grid = np.linspace(-0.2, target - 0.005, 200)
    allowed = [q for q in grid if excess(right, q) <= 1]
    # the test must detect the change at every allowed quantile: the least of them is the hardest
    return min(allowed, key=lambda q: excess(x, q))


def mean_pits(tables: Tables, runs: int) -> None:
    """Print false alarms and delays of the promise about mean served PITs."""
    right = tables.mean_pits(population())
    truth = cvar(right, MASS)
    target = truth + 0.30 - cvar(tables.errors(population()), MASS)
    few = max(1, runs // 2)
    print()
    print(f"group error of at most {target:.3f} in every group of {MASS:g}, {truth:.3f} before the")
    print(f"change; all quantiles and both sides, and an oracle that knows them; {few} runs")
    print(f"{'':36s}{'watch':>16s}{'oracle':>16s}")
    stream = days(few, DAYS, PEOPLE, None, 3)
    found = first_alarms([both_sides(tables, truth, few)], stream, few)
    print(f"{'false alarms in a year, at the null':36s}{found.alarms(0):>16s}", flush=True)
    changes = CHANGES | {"all shift 0.3 sd": (shifted(0.3), ""), "spread by 1.5": (spread(1.5), "")}
    for name, (change, _) in changes.items():
        x = tables.mean_pits(population(change))
        q = best_quantile(x, right, target)
        stream = days(few, DAYS, PEOPLE, change, 4)
        methods = [both_sides(tables, target, few), oracle(tables, q, target, few)]
        found = first_alarms(methods, stream, few)
        delays = "".join(f"{found.delay(i):>16s}" for i in range(2))
        label = f"{name} ({cvar(x, MASS):.3f})"
        print(f"{label:36s}{delays}", flush=True)


def shocks(tables: Tables, runs: int) -> None:
    """Print alarms in years whose days have common shocks, which break the promise of some days."""
    few = max(1, runs // 4)
    score = population()
    margin = 0.30 - cvar(tables.errors(score), MASS)
    print()
    print(
        "alarms in a year if all outcomes of a day have a common shock; the promise holds for the"
    )
    print(f"people of the year: just, and by {margin:.3f}; {few} runs")
    for size in SHOCKS:
        truth = cvar(tables.mean_pits(score * math.hypot(1.0, size)), MASS)
        shares = ""
        for target in (truth, truth + margin):
            rng = np.random.default_rng(7)
            stream = (
                (day, rng.normal(size=(PEOPLE, few)) + size * rng.normal(size=few))
                for day in range(1, DAYS + 1)
            )
            found = first_alarms([both_sides(tables, target, few)], stream, few)
            shares += f"{found.alarms(0):>16s}"
        print(f"{f'shock of {size:g} sd ({truth:.3f})':36s}{shares}", flush=True)


def witnesses(u: Values) -> tuple[Values, Values]:
    """Return the four witnesses of PITs, (..., 4), and their least values."""
    level, width = u - 0.5, np.abs(u - 0.5) - 0.25
    return np.stack((level, -level, width, -width), axis=-1), np.array([-0.5, -0.5, -0.25, -0.25])


def without_draws(score: Values) -> Values:
    """Return the witnesses of deterministic forecasts at normal scores."""
    return witnesses(special.ndtr(score))[0]


def group_test(
    runs: int, tolerance: float, values: Callable[[Values], Values] = without_draws
) -> tuple[Callable[[int, Values], Values], float]:
    """Return the test of one of several named groups: the mean over four witnesses."""
    low = np.tile(witnesses(np.zeros(1))[1], runs)
    processes = EProcesses(low, np.full(low.shape, tolerance))

    def largest(day: int, score: Values) -> Values:
        processes.begin_period()
        path = processes.update(values(score).reshape(len(score), -1))
        logs = path.reshape(len(score), runs, 4)
        return (special.logsumexp(logs, axis=-1) - math.log(4)).max(axis=0)

    return largest, math.log(N_GROUPS / RISK)


def named_group(runs: int) -> None:
    """Print false alarms and delays of a named group."""
    print()
    print(f"one of {N_GROUPS} named groups, {GROUP_PEOPLE} people a day, tolerance {TOLERANCE:g},")
    print(f"threshold {N_GROUPS / RISK:.0f}; PITs of a deterministic forecast; {runs} runs")
    print("(specification in brackets; its stakes seem to be at most 0.4)")
    # a shift whose W1 distance, the difference of means, is the tolerance
    size = optimize.brentq(lambda s: special.ndtr(s / math.sqrt(2)) - 0.5 - TOLERANCE, 0.0, 1.0)
    rng = np.random.default_rng(5)
    stream = ((day, size + rng.normal(size=(GROUP_PEOPLE, runs))) for day in range(1, DAYS + 1))
    found = first_alarms([group_test(runs, TOLERANCE)], stream, runs)
    print(f"{'false alarms in a year, W1 = 0.02':36s}{found.alarms(0):>16s}   (0 of 100)")
    for name, (change, expected) in GROUP_CHANGES.items():
        u = special.ndtr(population(change))
        w1 = float(np.abs(np.sort(u) - (np.arange(u.size) + 0.5) / u.size).mean())
        stream = days(runs, DAYS, GROUP_PEOPLE, change, 6)
        found = first_alarms([group_test(runs, TOLERANCE)], stream, runs)
        print(f"{f'{name} (W1 {w1:.3f})':36s}{found.delay(0):>16s}   ({expected})", flush=True)


def named_group_under_link(runs: int) -> None:
    """Print delays of a named group under a link, from means over draws and from single draws."""
    few = max(1, runs // 2)
    print()
    print(f"the same under {LINK}: witnesses averaged over draws, as in the watch,")
    print(f"and witnesses at the one draw that was served; {few} runs")
    print(f"{'':36s}{'averaged':>16s}{'one draw':>16s}")
    u = special.ndtr(SCORES)
    table = averaged_witnesses(LINK, u, u)

    def averaged(score: Values) -> Values:
        return np.stack([np.interp(score, SCORES, one) for one in table.T], axis=-1)

    draws = np.random.default_rng(8)

    def at_draws(score: Values) -> Values:
        return witnesses(LINK.ppf(special.ndtr(score), draws.uniform(size=score.shape)))[0]

    for name, (change, _) in GROUP_CHANGES.items():
        score = population(change)
        pit = np.sort(
            LINK.ppf(
                special.ndtr(score),
                np.random.default_rng(7).permutation((np.arange(score.size) + 0.5) / score.size),
            )
        )
        w1 = float(np.abs(pit - (np.arange(pit.size) + 0.5) / pit.size).mean())
        stream = days(few, DAYS, GROUP_PEOPLE, change, 6)
        tests = [group_test(few, TOLERANCE, values) for values in (averaged, at_draws)]
        found = first_alarms(tests, stream, few)
        delays = "".join(f"{found.delay(i):>16s}" for i in range(2))
        print(f"{f'{name} (W1 {w1:.3f})':36s}{delays}", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    tables = Tables.make()
    pathwise(tables, runs)
    mean_pits(tables, runs)
    shocks(tables, runs)
    named_group(runs)
    named_group_under_link(runs)


if __name__ == "__main__":
    main()
