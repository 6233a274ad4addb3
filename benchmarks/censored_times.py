"""Readings, certificates and tests of times that are cut off, in a simulation.

`log T = 0.6 + 0.8 x + 0.7 z`, of which the forecasts know the distribution; in a random fifth of
the people `z` has a mean of 1. People enter evenly over the 6 years of a study and leave it at a
constant rate, after 8 years in the mean. 50% of the people are censored if nobody is shifted.

1. Errors of everyone (nobody shifted) and of the shifted group, by five readings of the same rows.
2. 95% bounds for the error of every group of a size, with the entropic link at alpha 0.12, and what
   they are of rows whose times are all known.
3. Power at 5% of tests of a group: the test of an audit, D-calibration and its Kolmogorov-Smirnov
   version (SurvivalEVAL), and A-calibration, which is written here after Simonsen & Waagepetersen
   (2025): events and expected events in ten cells of PITs, by Akritas's chi-squared statistic.

    OMP_NUM_THREADS=1 python benchmarks/censored_times.py [--repeats 20] [--sets 1000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats
from SurvivalEVAL import d_calibration, ksd_calibration

from evenhand.calibration import (
    Cells,
    GroupRows,
    Reading,
    calibration_error,
    cell_error,
    censored_error,
    cvar,
)
from evenhand.calibration.kaplan_meier import largest_error
from evenhand.links import Entropic
from evenhand.tables import check_groups
from record import print_lost

Values = np.ndarray
LOCATION, SLOPE, SCALE = 0.6, 0.8, 0.7
STUDY, LEAVING, SHIFTED = 6.0, 8.0, 0.2
ROWS, HORIZON, ALPHA = 20_000, 2.0, 0.12
MASSES = (0.1, 0.2, 0.5)
GROUP = (100, 200, 1000)
CHANGES = {
    "none": (0.0, 1.0),
    "later by 0.2 sd": (0.2, 1.0),
    "later by 0.3 sd": (0.3, 1.0),
    "later by 0.5 sd": (0.5, 1.0),
    "sooner by 0.3 sd": (-0.3, 1.0),
    "spread 1.3": (0.0, 1.3),
    "spread 0.75": (0.0, 0.75),
}
KS_SHARE = 5
"""The bootstrap of the Kolmogorov-Smirnov version runs on one in so many data sets."""


@dataclass(frozen=True)
class Rows:
    """Rows of the simulation; `cdf` is that of the forecasts at the known time, `truth` at T."""

    cdf: Values
    event: Values
    truth: Values
    time: Values
    event_at: Values
    entered: Values
    at_horizon: Values
    is_shifted: Values

    @classmethod
    def of(
        cls,
        n: int,
        random: np.random.Generator,
        shift: float,
        spread: float = 1.0,
        share: float = 1,
    ) -> Rows:
        x, z = random.normal(size=(2, n))
        is_shifted = random.random(n) < share
        z = np.where(is_shifted, shift + spread * z, z)
        event_at = np.exp(LOCATION + SLOPE * x + SCALE * z)
        entered = random.uniform(0, STUDY, n)
        cut = np.minimum(STUDY - entered, random.exponential(LEAVING, n))
        known = np.minimum(event_at, cut)

        def cdf(at: Values | float) -> Values:
            return special.ndtr((np.log(at) - LOCATION - SLOPE * x) / SCALE)

        return cls(
            cdf(known),
            event_at <= cut,
            cdf(event_at),
            known,
            event_at,
            entered,
            cdf(HORIZON),
            is_shifted,
        )

    def pits(self, random: np.random.Generator) -> Cells:
        high = np.where(self.event, self.cdf, 1.0)
        ties = random.random(self.cdf.size)
        return Cells(self.cdf, high, ties=ties, reading=~self.event * Reading.UNKNOWN)


def readings(rows: Rows, random: np.random.Generator) -> list[float]:
    """Errors of the readings, and the ends of both kinds of bounds."""
    pits = rows.pits(random)
    found = censored_error(pits, random_state=random)
    return [
        1 - rows.event.mean(),
        calibration_error(rows.truth),
        calibration_error(rows.cdf[rows.event]),
        calibration_error(rows.cdf),
        calibration_error(pits.drawn[:, 0]),
        found.error,
        cell_error(pits),
        largest_error(pits),
        found.least,
        found.most,
    ]


NAMES = (
    "censored",
    "truth (all times known)",
    "drop censored rows",
    "censored as events",
    "randomized PIT",
    "Kaplan-Meier of PITs",
    "no assumption: least",
    "no assumption: most",
    "no assumption, 95%: least",
    "no assumption, 95%: most",
)


def table_of_readings(repeats: int) -> None:
    """Print mean and standard deviation of each reading."""
    random = np.random.default_rng(1)
    columns = {
        f"everyone, {ROWS:,d}": (ROWS, 0.0),
        f"shifted, {int(ROWS * SHIFTED):,d}": (int(ROWS * SHIFTED), 1.0),
    }
    found = {
        name: np.array([readings(Rows.of(n, random, shift), random) for _ in range(repeats)])
        for name, (n, shift) in columns.items()
    }
    print(f"1. errors, mean of {repeats} data sets (standard deviation of one)")
    print("  " + " " * 27 + "".join(f"{name:>20s}" for name in columns))
    for i, name in enumerate(NAMES):
        shown = "".join(f"{v[:, i].mean():13.3f} ({v[:, i].std():.3f})" for v in found.values())
        print(f"  {name:27s}{shown}")


class Errors:
    """Pathwise errors of PITs under a link, and of what is known above a PIT."""

    def __init__(self, link: Entropic, size: int = 2000) -> None:
        r = (np.arange(size) + 0.5) / size
        self.u = np.linspace(0, 1, 501)
        served = np.stack([link.ppf(np.full(size, u), r) for u in self.u])
        self.values = np.maximum(served - r, 0).mean(axis=1)

    def above(self, u: Values) -> Values:
        """Error of who is seen at a horizon of base PIT `u`, a cell up to 1."""
        return np.interp(u, self.u, self.values)

    def at(self, u: Values) -> Values:
        """Error of a known PIT."""
        return self.above(u) + self.above(1 - u)


def groups_of_a_size(repeats: int) -> None:
    """Print the mean error of the worst share of the people, by what is done with the lost."""
    random = np.random.default_rng(2)
    errors = Errors(Entropic(ALPHA))
    found: dict[str, list[list[float]]] = {}
    lost_shares = []
    for _ in range(repeats):
        rows = Rows.of(ROWS, random, 1.0, share=SHIFTED)
        happens = rows.event & (rows.time <= HORIZON)
        lost = ~happens & (rows.time < HORIZON)
        last = errors.above(rows.at_horizon)
        known = np.where(happens, errors.at(rows.cdf), last)
        worst = np.maximum(errors.at(rows.cdf), errors.at(rows.at_horizon))
        # the error is convex in the PIT, and least next to the middle of what is possible
        best = np.minimum(errors.at(np.clip(0.5, rows.cdf, rows.at_horizon)), last)
        followed = STUDY - rows.entered >= HORIZON
        lost_shares.append((lost.mean(), lost[followed].mean()))
        values = {
            "true": np.where(rows.event_at <= HORIZON, errors.at(rows.truth), last),
            "no horizon": np.where(rows.event, errors.at(rows.cdf), 0.5),
            "horizon, all rows": np.where(lost, worst, known),
            "entered a horizon ago": np.where(lost, worst, known)[followed],
            "wrong: uncensored rows alone": errors.at(rows.truth)[rows.event],
            "wrong: favourable completion": np.where(lost, best, known),
        }
        for name, value in values.items():
            found.setdefault(name, []).append([cvar(value, mass) for mass in MASSES])
    all_rows, of_followed = np.mean(lost_shares, axis=0)
    print(f"2. error of every group of a size, {Entropic(ALPHA)}, horizon {HORIZON:g}, {ROWS:,d}")
    print(f"  people, mean of {repeats} data sets (standard deviation of one)")
    print(f"  lost: {100 * all_rows:.1f}% of all, {100 * of_followed:.1f}% of those who entered")
    print("  a horizon before the end of the study")
    print("  " + " " * 30 + "".join(f"{mass:15g}" for mass in MASSES))
    for name, each in found.items():
        mean, deviation = np.mean(each, axis=0), np.std(each, axis=0)
        shown = "".join(f"{m:8.3f} ({d:.3f})" for m, d in zip(mean, deviation, strict=True))
        print(f"  {name:30s}{shown}", flush=True)


def p_audit(rows: Rows, random: np.random.Generator) -> float:
    """P-value of a group in an audit."""
    everyone = check_groups({"group": np.ones(rows.cdf.size, dtype=bool)}, rows.cdf.size)
    sums = GroupRows.of(rows.pits(random), None, random).sums(everyone.values())
    return float(sums.tests[-1][0])


def p_d_calibration(rows: Rows, random: np.random.Generator) -> float:
    """P-value of D-calibration, in ten bins."""
    return float(d_calibration(1 - rows.cdf, rows.event)[1])


def p_ks_calibration(rows: Rows, random: np.random.Generator) -> float:
    """P-value of the Kolmogorov-Smirnov version, by a bootstrap of 199 data sets."""
    seed = int(random.integers(2**31))
    return float(ksd_calibration(1 - rows.cdf, rows.event, n_resamples=199, seed=seed)[0])


def p_a_calibration(rows: Rows, random: np.random.Generator, cells: int = 10) -> float:
    """Chi-squared test of the events in cells of PITs, with as many degrees of freedom.

    While at risk, a person has the hazard 1 / (1 - u) at PIT u, so that observed minus expected
    events of the cells are uncorrelated, with the expected number as their variance. The highest
    cells are joined until 5 events are expected in each.
    """
    edges = np.linspace(0, 1, cells + 1)
    events = np.histogram(rows.cdf[rows.event], edges)[0].astype(float)
    inside = np.clip(rows.cdf[:, None], edges[:-1], np.minimum(edges[1:], 1 - 1e-12))
    expected = np.log((1 - edges[:-1]) / (1 - inside)).sum(axis=0)
    while expected.size > 1 and expected[-1] < 5:
        expected = np.append(expected[:-2], expected[-2:].sum())
        events = np.append(events[:-2], events[-2:].sum())
    return float(stats.chi2.sf(((events - expected) ** 2 / expected).sum(), expected.size))


TESTS: dict[str, Callable[[Rows, np.random.Generator], float]] = {
    "audit": p_audit,
    "D-calibration": p_d_calibration,
    "A-calibration": p_a_calibration,
    "KS version": p_ks_calibration,
}


def power(n_sets: int) -> list[str]:
    """Print shares of data sets that each test rejects at 5%, and times; returns lost cases.

    A case is lost if another test finds the change in at least two standard errors more data sets.
    """
    lost_cases = []
    seconds, runs = dict.fromkeys(TESTS, 0.0), dict.fromkeys(TESTS, 0)
    print(f"3. rejected at 5%, {n_sets} data sets ({n_sets // KS_SHARE} for the KS version)")
    print(f"  {'change of the group':20s}{'people':>7s}" + "".join(f"{t:>15s}" for t in TESTS))
    for name, (shift, spread) in CHANGES.items():
        for n in GROUP:
            random = np.random.default_rng((3, n))
            rejected = dict.fromkeys(TESTS, 0)
            tried = dict.fromkeys(TESTS, 0)
            for i in range(n_sets):
                rows = Rows.of(n, random, shift, spread)
                for test, p_value in TESTS.items():
                    if test == "KS version" and (i % KS_SHARE or n > 200):
                        continue
                    start = time.process_time()
                    rejected[test] += p_value(rows, random) < 0.05
                    tried[test] += 1
                    if n == 200:
                        seconds[test] += time.process_time() - start
                        runs[test] += 1
            shown = "".join(
                f"{100 * rejected[t] / tried[t]:14.1f}%" if tried[t] else f"{'-':>15s}"
                for t in TESTS
            )
            print(f"  {name:20s}{n:7,d}{shown}", flush=True)
            share = {t: rejected[t] / tried[t] for t in TESTS if tried[t]}
            best = max(share, key=lambda t: share[t])
            error = (share["audit"] * (1 - share["audit"]) / tried["audit"]) ** 0.5
            if CHANGES[name] != (0.0, 1.0) and share[best] > share["audit"] + 2 * error:
                lost_cases.append(f"{name}, {n:,} people ({best})")
    of_audit = seconds["audit"] / runs["audit"]
    shown = "".join(f"{seconds[t] / runs[t] / of_audit:15.2f}" for t in TESTS)
    print(f"  time of a test, 200 people {shown}")
    return lost_cases


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20, help="data sets of tables 1 and 2")
    parser.add_argument("--sets", type=int, default=1000, help="data sets of each power")
    options = parser.parse_args()
    table_of_readings(options.repeats)
    groups_of_a_size(options.repeats)
    print_lost(power(options.sets))


if __name__ == "__main__":
    main()
