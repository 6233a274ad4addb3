"""Plant faults in a copy of the package, one at a time, and report those that no test detects.

    python tools/plant_faults.py              all faults
    python tools/plant_faults.py FAULT ...    some of them, by name
    python tools/plant_faults.py --list       their names

Each fault is a slip that a reviewer may overlook, in code that guarantees depend on. Its tests are
named, so that a fault takes seconds and not the minutes of the whole suite; they run in the short
form of `make test`, with one in 24 of the repeats of statistical tests, once without a fault and
then the shortest first. The exit code is the number of faults that no test detected.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src", "evenhand")

CERTIFICATES = ("test_certificates.py", "test_counts.py", "test_golden.py")
PROVEN = ("test_proven.py",)
LINKS = ("test_links.py",)
STORE = ("test_forged.py", "test_store.py")


@dataclass(frozen=True)
class Fault:
    """A slip: the text `old`, which occurs once in the whole package, becomes `new`."""

    name: str
    old: str
    new: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "intervals of changes in a handful of rows",
        "return 0 < differs.sum() < LEAST_VARIED",
        "return False and bool(differs.any())",
        ("test_compare.py",),
    ),
    Fault(
        "mean positions in cells that vary like drawn ones",
        'left = NULL_VARIANCES["level"] - (high - low) ** 2 / 12',
        'left = NULL_VARIANCES["level"] + 0 * low',
        ("test_own_forecast.py", "test_verdicts.py"),
    ),
    Fault(
        "a tolerance of 2 points where nearly all outcomes are alike",
        "return min(TOLERANCE, 0.4 * variance)",
        "return TOLERANCE",
        ("test_verdicts.py",),
    ),
    Fault(
        "rows thinned before one of each person is chosen",
        "rows = np.sort(one_row_each(outcomes.person, rows.size, random))",
        "pass",
        ("test_new_promises.py",),
    ),
    Fault(
        "equal weights below the largest of the design taken for a plain sample",
        "are_all = largest is None or largest <= weight[0] * (1 + 1e-9)",
        "are_all = True",
        ("test_new_promises.py",),
    ),
    Fault(
        "the coverage of a known link as if it were that of one draw",
        "            served.n_draws,\n",
        "            m,\n",
        ("test_new_promises.py",),
    ),
    # one for each row of the table of bounds
    Fault(
        "an unknown position has its error at the lower end",
        "for end in (cells.low, cells.high))\n        errors[unknown]",
        "for end in (cells.low, cells.low))\n        errors[unknown]",
        PROVEN,
    ),
    Fault(
        "errors of averaged cells under a link are those of their lower ends",
        'link needs its draws",\n        has_link=True,\n        has_widths=False,',
        'link needs its draws",\n        has_link=True,',
        PROVEN,
    ),
    Fault(
        "ordered bounds for counts without Theorem L",
        "Reading.UNKNOWN}),\n        has_link=True,\n        has_widths=False,",
        "Reading.UNKNOWN}),\n        has_link=True,",
        PROVEN,
    ),
    Fault(
        "Theorem L for unknown positions",
        "        frozenset({Reading.AVERAGED}),\n",
        "        frozenset({Reading.AVERAGED, Reading.UNKNOWN}),\n",
        PROVEN,
    ),
    Fault(
        "an unknown outcome is covered if its lower end is",
        "inside = (cells.low >= ends[0]) & (cells.high <= ends[1])",
        "inside = cells.low >= ends[0]",
        PROVEN,
    ),
    Fault(
        "the gap of an unknown outcome at its lower end",
        "worst = np.maximum(np.abs(low - r), np.abs(high - r))",
        "worst = np.abs(low - r)",
        PROVEN,
    ),
    Fault(
        "Theorem L without the distance of both positions",
        "ordered.group_error(link, mass) + shift, WORST)",
        "ordered.group_error(link, mass), WORST)",
        PROVEN,
    ),
    Fault(
        "Bonferroni by one group too few",
        "return groups, 1 - (1 - self.confidence) / max(len(groups), 1)",
        "return groups, 1 - (1 - self.confidence) / max(len(groups) - 1, 1)",
        CERTIFICATES,
    ),
    Fault(
        "both ends of coverage at the whole risk",
        "size, 1.0, 1 - risk * (1 - LOW_SHARE))",
        "size, 1.0, 1 - risk)",
        CERTIFICATES,
    ),
    Fault(
        "the error of everybody and the band at the whole risk each",
        "band(WORST, 1 - (1 - self.confidence) * (1 - AVERAGE_SHARE))",
        "band(WORST, self.confidence)",
        CERTIFICATES,
    ),
    Fault(
        "a two-sided DKW band with the margin of a one-sided one",
        "np.log(2 / (1 - confidence))",
        "np.log(1 / (1 - confidence))",
        ("test_bands.py", "test_certificates.py"),
    ),
    Fault(
        "a two-sided Clopper-Pearson interval with one-sided tails",
        "hits, hits, n, (1 - confidence) / 2",
        "hits, hits, n, 1 - confidence",
        ("test_bands.py", "test_calibration.py", "test_audits.py", "test_loss_guarantee.py"),
    ),
    Fault(
        "ties of a threshold left out of mPAIC",
        "hits = self.high >= threshold",
        "hits = self.high > threshold",
        CERTIFICATES,
    ),
    Fault(
        "groups of all rows for one row of each person",
        "named = named.take(rows)",
        "named = named.take(np.arange(rows.size))",
        CERTIFICATES,
    ),
    Fault(
        "errors of counted people at the lower ends of their bins",
        "np.arange(1, n_bins + 1) * (top / n_bins)",
        "np.arange(n_bins) * (top / n_bins)",
        ("test_counts.py",),
    ),
    Fault(
        "a tested target quoted for smaller groups too",
        "return size >= self.choice.mass * (1 - 1e-12)",
        "return mass / self.ratio <= self.choice.mass * (1 - 1e-12)",
        ("test_selection.py",),
    ),
    Fault(
        "rows of one person all used for a certificate of links",
        "cells = cells.take(one_row_each(person, u.size, random_state))",
        "cells = cells.take(np.arange(u.size))",
        ("test_any_link.py", "test_selection.py"),
    ),
    Fault(
        "people who were lost counted as 0 instead of at both ends",
        "_anywhere(Cells(u, np.where(unknown, 1.0, u), reading=unknown))",
        "Cells(np.where(unknown, 0.0, u), reading=unknown)",
        ("test_times_certificates.py",),
    ),
    Fault(
        "people who may not have the event counted above their last time only",
        "low = np.where(cells.unknown[:, None], 0.0, cells.low)",
        "low = cells.low",
        ("test_times_certificates.py",),
    ),
    Fault(
        "people who were lost counted at the smaller end of their errors",
        "np.maximum(*map(_errors, ends))",
        "np.minimum(*map(_errors, ends))",
        ("test_times_certificates.py",),
    ),
    Fault(
        "half a cell of draws not added to a probability of a miss",
        "self._least_worst(near, far, 1 / DRAW_CELLS, mass)",
        "self._least_worst(near, far, 0.0, mass)",
        ("test_any_link.py",),
    ),
    Fault(
        "probabilities of a miss read where the band steps, without the largest so far",
        "np.maximum.accumulate(np.append(near[0], near[:-1]) + far)",
        "np.append(near[0], near[:-1]) + far",
        ("test_any_link.py",),
    ),
    Fault(
        "the largest alpha of the search, whether or not its bound meets the target",
        "return alpha if bound_at(alpha) <= most else None",
        "return alpha",
        ("test_selection.py",),
    ),
    Fault(
        "a band of a CDF read at a value, not just below it",
        'np.searchsorted(self.starts, u, side="right") - 1',
        'np.maximum(np.searchsorted(self.starts, u, side="left") - 1, 0)',
        ("test_sharp.py", "test_event_certificates.py"),
    ),
    Fault(
        "event rates from the upper ends of binned probabilities",
        "np.where(self.possible, self.low, 1.0)",
        "np.where(self.possible, self.high, 1.0)",
        ("test_event_certificates.py",),
    ),
    Fault(
        "group sizes of event rates as shares of the people with a low forecast",
        "min(float(share) / size, 1.0)",
        "min(float(share) / (size * float(np.mean(self._known_events('').low <= below))), 1.0)",
        ("test_event_certificates.py",),
    ),
    Fault(
        "the bound of a link for forecasts of counts",
        "if base.averaged.all() and not base.are_points:",
        "if False:",
        ("test_certificates_of_atoms.py",),
    ),
    Fault(
        "group errors of a hurdle from all people",
        "found = self.off_atom or self.everyone",
        "found = self.everyone",
        ("test_certificates_of_atoms.py",),
    ),
    Fault(
        "the whole risk for each of two bands",
        "each = (1 + confidence) / 2",
        "each = confidence",
        ("test_sharp.py",),
    ),
    Fault(
        "a bound for every group from its lower tail alone",
        "np.maximum(above, mirrored[::-1, ::-1].T)",
        "above",
        ("test_sharp.py",),
    ),
    Fault(
        "a sign change only at the edges of cells",
        "caps = cap(heights.mean, right[:, None], low[:, None])",
        "caps = cap(heights.mean, left[:, None], heights.low[np.clip(first, 0, k)][:, None])",
        ("test_sharp.py",),
    ),
    Fault(
        "served PITs at the upper ends of the cells of draws",
        "np.maximum(np.arange(DRAW_CELLS) / DRAW_CELLS, 2.0**-60)",
        "np.minimum(np.arange(1, DRAW_CELLS + 1) / DRAW_CELLS, 1 - 2.0**-53)",
        ("test_sharp.py",),
    ),
    Fault(
        "a band that is left by as many ranks as there are, not one fewer",
        "np.asarray(betaincinv(ranks, n - ranks + 1, -np.expm1(log_level))",
        "np.asarray(betaincinv(ranks, n - ranks + 2, -np.expm1(log_level))",
        ("test_bands.py",),
    ),
    Fault(
        "a band whose steps begin one rank late",
        "np.searchsorted(upto[1:], n - ranks + 1)",
        "np.searchsorted(upto[1:], n - ranks)",
        ("test_bands.py",),
    ),
    Fault(
        "a sign in the price of a Laplace link",
        "log_z).sum() - self.kappa * self.mean_error",
        "log_z).sum() + self.kappa * self.mean_error",
        LINKS,
    ),
    Fault(
        "a sign in the paper's trivial forecaster, as it is printed",
        "special.log_ndtr(self._rest * special.ndtri_exp(log_u) + self.rho * _draw_score(r))",
        "special.log_ndtr(self._rest * special.ndtri_exp(log_u) - self.rho * _draw_score(r))",
        LINKS,
    ),
    Fault(
        "reflection of a link that keeps the draw",
        "lower(log_value, np.where(upper, 1 - draws, draws))",
        "lower(log_value, draws)",
        LINKS,
    ),
    Fault(
        "the worst people of a link in one tail only",
        "np.geomspace(1e-6, 1.0, 13))) * mass / 2, order=8",
        "np.geomspace(1e-6, 1.0, 13))) * mass, order=8",
        LINKS,
    ),
    Fault(
        "the integral of the mean PIT reflected without its linear part",
        "values - 0.5 + low, low)",
        "0.5 - low, low)",
        LINKS,
    ),
    Fault(
        "panels of the mean PIT that are not refined at the median",
        "3.0 ** np.arange(-6, 0)",
        "3.0 ** np.arange(-1, 0)",
        LINKS,
    ),
    Fault(
        "a group error of laplace below that of everybody",
        "max(tail, self.calibration_error)",
        "tail",
        LINKS,
    ),
    Fault(
        "draws that are not bound to their context",
        'start = len(prefix).to_bytes(8, "big") + prefix',
        'start = len(prefix).to_bytes(8, "big")',
        ("test_draws.py",),
    ),
    Fault(
        "context and id not separated",
        'len(prefix).to_bytes(8, "big") + prefix',
        "prefix",
        ("test_draws.py",),
    ),
    Fault(
        "a fingerprint under the personalization of the draws",
        'digest_size=8, person=b"evenhand key").digest()',
        'digest_size=8, person=b"evenhand draw").digest()',
        ("test_draws.py", "test_golden.py"),
    ),
    Fault(
        "the first row of each person, not a random one",
        "generator(random_state).permutation(n_samples)",
        "np.arange(n_samples)",
        ("test_draws.py", "test_certificates.py"),
    ),
    Fault(
        "midpoints for jittered draws",
        "np.clip((cells + uniform) / m",
        "np.clip((cells + 0.5 + 0 * uniform) / m",
        ("test_draws.py",),
    ),
    Fault(
        "the hash of a file not compared",
        'if digest(content) != file["sha256"]:',
        'if len(digest(content)) != len(file["sha256"]):',
        STORE,
    ),
    Fault(
        "the seal of the manifest not compared",
        "if digest(text.replace(seal, _UNSEALED, 1).encode()) != seal:",
        "if len(seal) != len(_UNSEALED):",
        STORE,
    ),
    Fault(
        "files outside the model folder opened",
        'if Path(name).name != name or name in ("", ".", ".."):',
        'if name in ("", ".", ".."):',
        STORE,
    ),
    Fault(
        "a newer format read as this one", "if version > FORMAT:", "if version > FORMAT + 1:", STORE
    ),
    Fault(
        "Holm's multipliers one too small",
        "np.arange(order.size, 0, -1)",
        "np.arange(order.size - 1, -1, -1)",
        ("test_scan.py",),
    ),
    Fault(
        "binomial tails also within one event of their mean",
        "bound = np.where(number >= np.maximum(mean + 1, 1.0), tail, 1.0)",
        "bound = np.where(number >= 1.0, tail, 1.0)",
        ("test_event_tests.py",),
    ),
    Fault(
        "a p-value from one tail",
        "return min(1.0, 2 * min(tails) + 1e-13)",
        "return min(1.0, min(tails) + 1e-13)",
        ("test_own_forecast.py", "test_event_tests.py"),
    ),
    Fault(
        "negative weights of a sum of events keep the order of its distribution",
        "spread[:: abs(w)] = own if w > 0 else own[::-1]",
        "spread[:: abs(w)] = own",
        ("test_own_forecast.py",),
    ),
    Fault(
        "weights of the trend about their plain mean",
        "variance = weights * probability * (1 - probability)\n    total",
        "variance = weights * np.ones_like(probability)\n    total",
        ("test_own_forecast.py",),
    ),
    Fault(
        "an upper end without the margin of its mean",
        "return float(last_within(is_within, np.zeros(()), np.ones(()), 50))",
        "return 0.0",
        ("test_own_forecast.py",),
    ),
    Fault(
        "an upper end of the groups by score alone",
        "max(measured, largest_signed_mean(event, probability))",
        "max(measured, 0.0)",
        ("test_own_forecast.py",),
    ),
    Fault(
        "equal forecasts in two groups",
        "_, place = np.unique(values, return_inverse=True)",
        "place = np.argsort(np.argsort(values, kind='stable'))",
        ("test_own_forecast.py",),
    ),
    Fault(
        "weighted tests with a centred variance",
        "variance = max((values**2).sum(), np.sum(least))",
        "variance = max(((values - values.mean()) ** 2).sum(), np.sum(least))",
        ("test_own_forecast.py",),
    ),
    Fault(
        "the spread of PITs beside a frequent outcome at drawn positions",
        "is_wide = high - low > WIDE",
        "is_wide = high - low > 2",
        ("test_own_forecast.py", "test_verdicts.py"),
    ),
    Fault(
        "an interval of the bias of outcomes that are all alike",
        "(varied * n >= LEAST_VARIED)",
        "(varied * n >= 0)",
        ("test_verdicts.py",),
    ),
    Fault(
        "tests of everyone without a correction for their number",
        "return min(1.0, len(self.tests) * min(self.tests.values()))",
        "return min(1.0, min(self.tests.values()))",
        ("test_own_forecast.py", "test_verdicts.py"),
    ),
    Fault(
        "the share of absent parts of a family is given twice",
        "fifths[name] += free / len(first)",
        "fifths[name] += free",
        ("test_simultaneous.py", "test_verdicts.py"),
    ),
    Fault(
        "a significant slope far from 1 is no problem",
        "is_beyond |= not SLOPES[0] <= one.slope <= SLOPES[1]",
        "is_beyond |= one.slope > SLOPES[1]",
        ("test_verdicts.py",),
    ),
    Fault(
        "a tolerance of 2 points for rare events",
        "return min(TOLERANCE, min(probability, 1 - probability) / 5)",
        "return TOLERANCE",
        ("test_verdicts.py",),
    ),
    Fault(
        "a single event is no evidence",
        "return np.where(number == 1, np.minimum(mean, 1.0), bound)",
        "return bound",
        ("test_event_tests.py",),
    ),
    Fault(
        "intervals of events where Y - P varies more than they do",
        "factor = np.sqrt(np.maximum(ratio, 1.0))",
        "factor = np.ones_like(ratio)",
        ("test_event_tests.py",),
    ),
    Fault(
        "simultaneous intervals at the level of a single group",
        "tail = level / (2 * max(n_groups, 1))",
        "tail = level / 2",
        ("test_simultaneous.py",),
    ),
    Fault(
        "upper ends of errors by the variance of uniform PITs",
        "1 / 12 + error - 2 / 3 * error**1.5",
        "1 / 12 + 0 * error",
        ("test_simultaneous.py",),
    ),
    Fault(
        "paired intervals of many groups at the level of one",
        "tail = (1 - confidence) / (2 * n_intervals)",
        "tail = (1 - confidence) / 2",
        ("test_compare.py",),
    ),
    Fault(
        "p-values of the larger of two statistics, not doubled",
        "np.minimum(2 * two_sided(",
        "np.minimum(1 * two_sided(",
        ("test_scan.py",),
    ),
    Fault(
        "a null of deterministic forecasts where a link was given",
        "return Cells(base if link is None else link.ppf(base, jittered(n, m, random)))",
        "return Cells(base)",
        ("test_worst.py",),
    ),
    Fault(
        "a null that is not scaled to the rows",
        "*= np.sqrt(n / pits.n_samples)",
        "*= 1.0",
        ("test_worst.py",),
    ),
    Fault(
        "a lower bound of bets with the stake's sign in the logarithm",
        "np.log1p(stakes * theta)",
        "stakes * theta - (stakes * theta) ** 2",
        ("test_detection.py",),
    ),
    Fault(
        "a learned group judged by rows that it was learned from",
        "n_learned = min(start, LEARNING_ROWS)",
        "n_learned = min(fold.stop, LEARNING_ROWS)",
        ("test_detection.py",),
    ),
    Fault(
        "a detection test with half its p-value",
        "0.5 * math.erfc(",
        "0.25 * math.erfc(",
        ("test_detection.py",),
    ),
    Fault(
        "a rule of a learned group printed with the next cuts",
        "float(table.cuts[column][int(end)])",
        "float(table.cuts[column][int(end) - 1])",
        ("test_detection.py",),
    ),
    Fault(
        "worst groups decided by errors in cells that may be too small",
        "crosses = (below < self.edges[1:]) & (above > self.edges[:-1])",
        "crosses = (below < self.edges[:-1]) & (above > self.edges[1:])",
        ("test_worst.py",),
    ),
    Fault(
        "a bound printed rounded down",
        'return show(value, "up")',
        'return show(value, "nearest")',
        ("test_format.py",),
    ),
    Fault(
        "the pathwise error of a weighted sample without its weights",
        "np.cumsum(weights[order[block] // cells.n_draws])",
        "np.cumsum(weights[order[block] // cells.n_draws] * 0 + 1)",
        ("test_calibration.py",),
    ),
    Fault(
        "a chosen model certified on rows that it learned from",
        "    X, outcomes = rows.certifying()\n    # the grid of all rows",
        "    X, outcomes = rows.learning()\n    # the grid of all rows",
        ("test_selection.py",),
    ),
    Fault(
        "the confidence of a choice not handed on",
        "family, lost=lost, confidence=target.confidence)",
        "family, lost=lost)",
        ("test_randomize_command.py",),
    ),
    Fault(
        "weights not handed on to a recalibration",
        "known.horizon, weight=known.weight))",
        "known.horizon))",
        ("test_selection.py",),
    ),
    Fault(
        "links of counts tested on after a failure",
        "[*takewhile(lambda alpha: bound_at(alpha) <= most, ALPHAS)]",
        "[alpha for alpha in ALPHAS if bound_at(alpha) <= most]",
        ("test_selection_kinds.py",),
    ),
    Fault(
        "the risk of affordable links of counts not shared",
        "error_at(link, 1 - risk)",
        "error_at(link)",
        ("test_selection_kinds.py",),
    ),
    Fault(
        "the price beside an atom not a mean over all people",
        "np.nan_to_num(losses).sum()) / self.wrapped.outcomes.n_samples",
        "np.nan_to_num(losses).mean())",
        ("test_selection_kinds.py",),
    ),
    Fault(
        "rounded outcomes scored by their densities",
        "return cell_log_score(forecast, y, grid.step, grid.span)",
        "return log_score(forecast, y)",
        ("test_scoring.py",),
    ),
    Fault(
        "the price of rounded outcomes from points",
        "losses = log_scores(served, outcomes, self.grid) - self._scores",
        "losses = log_scores(served, outcomes, None) - log_scores(base, outcomes, None)",
        ("test_selection.py",),
    ),
    Fault(
        "new rows without the certified link",
        "chosen.model, held, record, chosen.summary()",
        "given.forecaster, held, record, chosen.summary()",
        ("test_randomize_command.py",),
    ),
    Fault(
        "forecasts without the horizon of their outcomes",
        "replace(columns, **named)",
        "replace(columns, event=times.event)",
        ("test_times_command.py",),
    ),
    Fault(
        "the event column among the searched columns",
        'return {self.rows.target: "target", self.times.event: "event"}',
        'return {self.rows.target: "target"}',
        ("test_times_command.py",),
    ),
    Fault(
        "ramps that never cross the diagonal",
        "size += (start + stop) ** 2 / (size + 1e-300)",
        "size += np.abs(start + stop)",
        ("test_cells.py",),
    ),
    Fault(
        "all PITs in the middle of their cells",
        "share[:, None] * (high",
        "0.5 * (high",
        ("test_cells.py",),
    ),
    Fault(
        "a null without the cells of simulated outcomes",
        "if simulate is None else simulate(random)",
        "if n else simulate(random)",
        ("test_discrete_search.py",),
    ),
    Fault(
        "the left limit of a randomized count at the count itself",
        "self.forward(self.base.tail(y, left=left).near())",
        "self.forward(self.base.tail(y).near())",
        ("test_distributions.py",),
    ),
    Fault(
        "the atom of a hurdle randomized with the rest",
        "        if self.outcome_kind is not OutcomeKind.HURDLE:\n            return Forecast(Rand",
        "        if not self.is_randomized:\n            return Forecast(Rand",
        ("test_forecast.py",),
    ),
    Fault(
        "a slope of log odds around 0, not around their mean",
        "slope * (odds - self.center)",
        "slope * odds",
        ("test_recalibrated_kinds.py",),
    ),
    # audits
    Fault(
        "the p-value of everybody not scaled to its share of the risk",
        'float(scaled(given.p_value, family, "everyone"))',
        "given.p_value",
        ("test_simultaneous.py",),
    ),
    Fault(
        "a certified bias of one side in a gate",
        "return max(-low, high)",
        "return high",
        ("test_audit_kinds.py",),
    ),
    Fault(
        "two audits of a comparison with a seed each",
        'asked = options | {"search": search, "random_state": seed}',
        'asked = options | {"search": search, "random_state": random_state}',
        ("test_compare.py",),
    ),
    Fault(
        "a scanned group paired on the rows outside of it",
        "if name in names and name not in named:\n            yield name, mask",
        "if name in names and name not in named:\n            yield name, ~mask",
        ("test_compare.py",),
    ),
    Fault(
        "own intervals of two audits swapped",
        "(*before, *after, change, *ends)",
        "(*after, *before, change, *ends)",
        ("test_compare.py",),
    ),
    Fault(
        "people who were lost counted as without an event",
        "(happened, happened | lost)",
        "(happened, happened)",
        ("test_audit_times.py",),
    ),
    Fault(
        "both bounds of a group known by probability at the whole risk",
        "ndtri((1 - confidence) / 2) * np.sqrt(influence @ influence)",
        "ndtri(1 - confidence) * np.sqrt(influence @ influence)",
        ("test_membership.py",),
    ),
    Fault(
        "members of a scanned group by their places among the kept rows",
        "{name: held.kept[mask] for name, mask in masks.items()}",
        "{name: np.flatnonzero(mask) for name, mask in masks.items()}",
        ("test_members.py",),
    ),
    Fault(
        "the variance of a weighted mean with the weights once",
        "(share**2 * (values - mean) ** 2).sum()",
        "(share * (values - mean) ** 2).sum() / share.size",
        ("test_audits.py",),
    ),
    Fault(
        "cells twice as wide as the rounding of outcomes",
        "half = 0.0 if self.step is None else self.step / 2",
        "half = 0.0 if self.step is None else self.step",
        ("test_audit_kinds.py",),
    ),
    Fault(
        "members of a learned group by their places among the kept rows",
        "{one.mass or one.group: kept[some] for one, some in learned}",
        "{one.mass or one.group: some for one, some in learned}",
        ("test_members.py",),
    ),
    Fault(
        "one row of each person counted from the rows of positive weight",
        "people = kept[one_row_each(person[kept], kept.size, random)]",
        "people = one_row_each(person[kept], kept.size, random)",
        ("test_members.py",),
    ),
    Fault(
        "biases of the two sides of a change swapped",
        "change - half - other_bias, change + half + bias",
        "change - half - bias, change + half + other_bias",
        ("test_compare.py",),
    ),
    Fault(
        "event rates of many groups at the level of one",
        "each = 1 - (1 - held.options.confidence) / len(listed)",
        "each = held.options.confidence",
        ("test_audit_times.py",),
    ),
    # report
    Fault(
        "changes within the tolerance counted in the verdict of a comparison",
        "n = Counter(row.outcome for row in self.groups if not is_slight(row))",
        "n = Counter(row.outcome for row in self.groups)",
        ("test_compare.py",),
    ),
    Fault(
        "a floor of a smaller interval given as the same",
        "[one for one in plain if one.floor >= least]",
        "[one for one in plain if one.covered >= least]",
        ("test_status.py",),
    ),
    Fault(
        "floors of intervals without a draw at another size",
        "floors = {(one.level, one.mass): one.floor for one in found}",
        "floors = {(one.level, masses[0]): one.floor for one in found}",
        ("test_html.py",),
    ),
    Fault(
        "a lower bound of a case rounded to the nearest",
        'least = f", at least {at_least(one.least)}" if one.least else ""',
        'least = f", at least {points(one.least)}" if one.least else ""',
        ("test_verdict_agreement.py",),
    ),
    Fault(
        "the mean of outcomes on the other side in words",
        "by_mean = LOWER if (one.bias or 0.0) < 0 else HIGHER",
        "by_mean = HIGHER if (one.bias or 0.0) < 0 else LOWER",
        ("test_verdict_agreement.py",),
    ),
    Fault(
        "the promise to every group with the bounds of one link as if each held by itself",
        'each = "confidence each" if proof.link_bound is None else "joint confidence"',
        'each = "confidence each"',
        ("test_status.py",),
    ),
    Fault(
        "a rule that is suggested without the quotes of its values",
        "{as_value(value)}",
        "{value}",
        ("test_status.py",),
    ),
    Fault(
        "the probability of the evidence of an alarm rounded down",
        "digits_of(value, 2, 'down')",
        "digits_of(value, 2, 'up')",
        ("test_watch_page.py",),
    ),
    Fault(
        "the range of a broken promise rounded inwards",
        "{band(show, *known)}",
        "{show(known[0], 'up')} to {show(known[1], 'down')}",
        ("test_watch_page.py",),
    ),
    Fault(
        "a mark drawn as a problem wherever an error is significant",
        "is_off=one.problem",
        "is_off=one.off",
        ("test_verdict_agreement.py",),
    ),
    Fault(
        "the verdict on the bound farthest from a fifth",
        "min(known, key=lambda one: abs(one.mass - MASS), default=None)",
        "max(known, key=lambda one: abs(one.mass - MASS), default=None)",
        ("test_status.py",),
    ),
    Fault(
        "a bound of one draw per person read as a guarantee",
        "not self.is_randomized or (self.n_draws == 1 and not proof.link_bound):",
        "not (self.is_randomized or proof.link_bound):",
        ("test_status.py",),
    ),
    Fault(
        "a group known by probability proven within the tolerance",
        "return not self.probable and most is not None and",
        "return most is not None and",
        ("test_membership.py",),
    ),
    Fault(
        "the detectable error of two-sided tests at a one-sided level",
        "special.ndtri(POWER) - special.ndtri(level / 2)",
        "special.ndtri(POWER) - special.ndtri(level)",
        ("test_status.py",),
    ),
    Fault(
        "higher and lower outcomes by the mean PIT swapped",
        "return LOWER if one.mean_pit < 0.5 else HIGHER",
        "return HIGHER if one.mean_pit < 0.5 else LOWER",
        ("test_verdicts.py",),
    ),
    Fault(
        "a group compared with itself in differences between groups",
        "return ~np.eye(n, dtype=np.bool_)",
        "return np.ones((n, n), dtype=np.bool_)",
        ("test_simultaneous.py",),
    ),
    Fault(
        "groups of a few rows in differences between groups",
        "if not (one.possible_leak or one.too_small)]",
        "if not one.possible_leak]",
        ("test_simultaneous.py",),
    ),
    Fault(
        "what was proven lost when an audit is read",
        "proof = proof_rows(self.certificate) or self.made.certificate",
        "proof = proof_rows(self.certificate)",
        ("test_audit_schema.py",),
    ),
    # forecasters
    Fault(
        "the part of a hurdle fitted with weights of other rows",
        "weight = take_rows(self.weight, rows)",
        "weight = take_rows(self.weight, slice(len(rows)))",
        ("test_forecasters.py",),
    ),
    Fault(
        "rows of positive weight matched with the masks of others",
        "kept = np.flatnonzero(sample_weight)",
        "kept = np.arange(np.count_nonzero(np.asarray(sample_weight)))",
        ("test_overlapping_repairs.py",),
    ),
    Fault(
        "the upper tail of residuals as long as the lower one",
        "high = values[-1] + reach * mean_excess(-ordered[::-1], weight[order][::-1])",
        "high = values[-1] + reach * mean_excess(ordered, weight[order])",
        ("test_residuals.py",),
    ),
    Fault(
        "residuals of a model that has seen the rows",
        "predicted[held_out] = predictions(fitted(estimator, learn), take_rows(rows.X, held_out))",
        "predicted[held_out] = predictions(fitted(estimator, rows), take_rows(rows.X, held_out))",
        ("test_forecasters.py",),
    ),
    Fault(
        "residuals normalized without their weights",
        "residuals = residual_distribution(normalized, rows.weights)",
        "residuals = residual_distribution(normalized, np.ones(n))",
        ("test_forecasters.py",),
    ),
    Fault(
        "values of a classifier rounded to whole numbers",
        "labels: Any = rows.y.astype(np.int64) if is_whole else np.searchsorted(values, rows.y)",
        "labels: Any = rows.y.astype(np.int64)",
        ("test_forecasters.py",),
    ),
    Fault(
        "labels without a map of their own with that of another group",
        "which = 1 + index.get_indexer(pd.Index(labels))",
        "which = index.get_indexer(pd.Index(labels))",
        ("test_recalibrated.py",),
    ),
    Fault(
        "a warning of all groups but those that are too small for maps",
        "if FEWEST_ROWS <= n < FEW_ROWS}",
        "if n >= FEW_ROWS}",
        ("test_recalibrated.py",),
    ),
    Fault(
        "probabilities of the first class as those of the second",
        "np.asarray(labels == self.classes_[1], dtype=float)",
        "np.asarray(labels == self.classes_[0], dtype=np.float64)",
        ("test_recalibrated_kinds.py",),
    ),
    Fault(
        "the map of a small group as if it had many rows",
        "share = max(0.0, 1 - 1 / (6 * n * distance)) ** 2",
        "share = max(0.0, 1 - 1 / (6 * n**2 * distance)) ** 2",
        ("test_recalibrated.py",),
    ),
    Fault(
        "values of held-out forecasts in the order of the folds",
        "return Observed.joined(parts), pd.concat(own).iloc[order]",
        "return Observed.joined(parts), pd.concat(own)",
        ("test_overlapping_repairs.py",),
    ),
    Fault(
        "people who were lost as if at their last time",
        "forecast.pit_interval(known, rounding=rounding)",
        "forecast.pit_interval(value, rounding=rounding)",
        ("test_recalibrated_times.py",),
    ),
    Fault(
        "a randomized point forecast of one draw",
        "return forecast, point_forecast(self.forecast(X, nodes(64)))",
        "return forecast, point_forecast(self.forecast(X, nodes(1)))",
        ("test_forecasters.py",),
    ),
    Fault(
        "the chance of an atom that of its complement",
        "chance = 1 - self.classifier_.forecast(rows).event_probability()",
        "chance = self.classifier_.forecast(rows).event_probability()",
        ("test_forecasters.py",),
    ),
    Fault(
        "held-out means of a model that has seen the rows",
        "mean = predictions(model, rows.X) if is_held_out else cross_fitted(estimator, rows)[0]",
        "mean = predictions(model, rows.X)",
        ("test_discrete_peers.py",),
    ),
    Fault(
        "a repair checked on rows that its maps learned from",
        "maps = Maps.learn(held_out.take(learn), weight[learn], members.take(learn))",
        "maps = Maps.learn(held_out, weight, members)",
        ("test_overlapping_repairs.py",),
    ),
    Fault(
        "gains of many groups at the level of one",
        "level = 1 - (1 - CONFIDENCE) / (1 + len(kinds))",
        "level = CONFIDENCE",
        ("test_overlapping_repairs.py",),
    ),
    Fault(
        "the harm of a repair called no evidence",
        'if high < 0:\n        return "harms"',
        'if high < low:\n        return "harms"',
        ("test_overlapping_repairs.py",),
    ),
    Fault(
        "tests of many groups at the level of one group",
        "if found.min() >= np.log(level / found.size):",
        "if found.min() >= np.log(level):",
        ("test_overlapping_repairs.py",),
    ),
    # distributions
    Fault(
        "the left limit of a hurdle with its atom",
        "is_up_to = point > self.at if left else point >= self.at",
        "is_up_to = point >= self.at",
        ("test_distributions.py",),
    ),
    Fault(
        "the density beside an atom without the probability of that part",
        "density = self._logs[1] + self.positive.logpdf(y)",
        "density = self.positive.logpdf(y)",
        ("test_distributions.py",),
    ),
    Fault(
        "the upper tail of quantiles with the probability of the lower one",
        "high = (1 - p[..., -1]) * (v[..., -1] - v[..., -2])",
        "high = p[..., 0] * (v[..., -1] - v[..., -2])",
        ("test_distributions.py",),
    ),
    Fault(
        "a sign in the variance of two exponential tails",
        "- (q * high - p * low) ** 2",
        "- (q * high + p * low) ** 2",
        ("test_distributions.py",),
    ),
    Fault(
        "samples smoothed without shrinking them",
        "centre + shrink * (self.values - centre)",
        "self.values",
        ("test_distributions.py",),
    ),
    Fault(
        "the mean of a survival curve without its tail",
        "self._knots.mean() - p * low + q * high",
        "self._knots.mean() - p * low",
        ("test_survival_models.py",),
    ),
    Fault(
        "the slope of a support with two bounds at its lower one alone",
        "np.logaddexp.reduce(slopes) if slopes",
        "slopes[0] if slopes",
        ("test_support.py",),
    ),
    Fault(
        "rows of joined distributions in the order of their batch",
        "batch.take(inside[inside >= 0])",
        "batch.take(np.sort(inside[inside >= 0]))",
        ("test_distributions.py",),
    ),
    Fault(
        "negative binomial probabilities one count late",
        "trials = size + k\n",
        "trials = size + k + 1\n",
        ("test_discrete_families.py",),
    ),
    Fault(
        "counts rounded, not rounded down",
        "np.ceil(point) - 1 if left else np.floor(point)",
        "np.ceil(point) - 1 if left else np.round(point)",
        ("test_distributions.py",),
    ),
    Fault(
        "a tail of a hurdle beyond its atom",
        'part - np.inf if upper == (self.end == "high") else part',
        "part",
        ("test_distributions.py",),
    ),
    Fault(
        "quantiles next to a bound from a density that changes",
        "~(change > np.minimum(ROUNDING * np.exp(-share), 1.0))",
        "True",
        ("test_distributions.py",),
    ),
    Fault(
        "small upper tails of categories as differences from 1",
        "np.cumsum(mass[..., ::-1], axis=-1, out=upper[..., -2::-1])",
        "upper[..., 1:] = 1 - lower[..., 1:]",
        ("test_discrete_families.py",),
    ),
    Fault(
        "the density of a transformed outcome per unit of the line",
        "self.base.logpdf(line) + self.support.log_slope(point)",
        "self.base.logpdf(line)",
        ("test_support.py",),
    ),
    Fault(
        "truncated quantiles with the tail beyond the other bound",
        "higher = np.logaddexp(above, self.base.logsf(high, left=True))",
        "higher = np.logaddexp(above, self.base.logsf(low, left=True))",
        ("test_support.py",),
    ),
    Fault(
        "the density of a recalibrated forecast without the slope of its map",
        "return self._sloped(y, self.base.logpdf(y))",
        "return self.base.logpdf(y)",
        ("test_recalibrated.py",),
    ),
    Fault(
        "the mean difference of a mixture counted twice in its CRPS",
        "found = found - self.weights[..., i]",
        "found = found - 2 * self.weights[..., i]",
        ("test_distributions.py",),
    ),
    Fault(
        "quantiles beside an atom from the wrong tail",
        "np.log(0.5), part.log), part.upper ^ is_high)",
        "np.log(0.5), part.log), ~part.upper ^ is_high)",
        ("test_distributions.py",),
    ),
    # monitoring
    Fault(
        "draws forgotten a generation early",
        "dict.fromkeys(islice(self._draws, GENERATION, None))",
        "dict.fromkeys(islice(self._draws, GENERATION + 1000, None))",
        ("test_watch.py",),
    ),
    Fault(
        "the direction of an alarm by the rows after it",
        "then.update(values[:end])",
        "then.update(values)",
        ("test_watch_groups.py",),
    ),
    Fault(
        "the evidence of each row read before it",
        "return self._mixed(gains[..., 1:]).T",
        "return self._mixed(gains[..., :-1]).T",
        ("test_e_processes.py",),
    ),
    Fault(
        "weights of start periods that add up to more than 1",
        "np.exp(-top) / (self.period + 1.0)",
        "np.exp(-top) / max(self.period, 1.0)",
        ("test_e_processes.py",),
    ),
    Fault(
        "rows that a process leaves out counted in it",
        "excess[np.isnan(excess)] = 0.0",
        "excess[np.isnan(excess)] = 0.1",
        ("test_e_processes.py",),
    ),
    Fault(
        "missing outcomes counted as those of a calibrated forecast",
        '-value if side == "lower" else value, least)',
        '-value if side == "lower" else value, 0.0)',
        ("test_promises.py",),
    ),
    Fault(
        "each side of a promise at its whole risk",
        'risks["promise"] / len(sides)',
        'risks["promise"]',
        ("test_watch.py",),
    ),
    Fault(
        "groups that appear later each at the whole risk of all of them",
        "1 / (later * (later + 1))",
        "np.ones(later.size)",
        ("test_watch_groups.py",),
    ),
    Fault(
        "draws of everybody and of the groups at the whole risk each",
        'risk = risks["draws"] / 2 if by_group else risks["draws"]',
        'risk = risks["draws"]',
        ("test_watch_groups.py",),
    ),
    Fault("weeks that begin on Tuesday", '"week": "W-SUN"', '"week": "W-MON"', ("test_watch.py",)),
    Fault(
        "everyone counted without the people who define the other groups",
        "self.groups.has_everyone :] = False",
        "0:] = False",
        ("test_watch_command.py",),
    ),
    Fault(
        "people who define the groups counted in them",
        "members[: max(0, self.n_learned - self.n_rows), self",
        "members[: max(0, self.n_learned - len(rows)), self",
        ("test_watch_command.py",),
    ),
    Fault(
        "an outcome recorded at its horizon is late",
        "waited <= as_duration(matures_after)",
        "waited < as_duration(matures_after)",
        ("test_watch.py",),
    ),
    Fault(
        "a watch that knows the outcomes of people lost before the horizon",
        "return np.where(y.is_lost, np.nan, low), np.where(y.is_lost, np.nan, high)",
        "return low, high",
        ("test_watch_command.py",),
    ),
    Fault(
        "missing outcomes in the tails of the envelope",
        "share, 0.0, 1.0), np.zeros(tails.size))",
        "share, 0.0, 1.0), np.ones(tails.size))",
        ("test_promises.py",),
    ),
    Fault(
        "forecasts whose horizon is still open counted as missing outcomes",
        "ended = rows.time + as_duration(matures_after) <=",
        "ended = rows.time <=",
        ("test_watch.py",),
    ),
    # service and logs
    Fault(
        "a decision log that survives a crash but no loss of power",
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=NORMAL",
        ("test_log_sqlite.py",),
    ),
    Fault(
        "a log whose file was replaced written on",
        "if not _is_file(self._path, self._file):",
        "if not self._path.exists():",
        ("test_log_sqlite.py",),
    ),
    Fault(
        "a decision log that others can read",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644",
        ("test_log_sqlite.py",),
    ),
    Fault(
        "an exported log that others can read",
        "os.fchmod(partial.handle, 0o600)",
        "os.fchmod(partial.handle, 0o644)",
        ("test_log_sqlite.py",),
    ),
    Fault(
        "a request that fails and takes those of other threads with it",
        "if len(batch) > 1 and not isinstance(error, LogError):",
        "if False:",
        ("test_decision_log.py",),
    ),
    Fault(
        "entries of the same group of works not found",
        "return found | {request: new[request] for request in requests if request in new}",
        "return found",
        ("test_decision_log.py",),
    ),
    Fault(
        "the next page of a log read from the first entry of the last one",
        "after = page[-1].number if page else until",
        "after = page[0].number if page else until",
        ("test_log_sqlite.py",),
    ),
    Fault(
        "a key or model exchanged inside a context",
        "if first.values[bound] != values[bound]:",
        "if first.values[bound] is None:",
        ("test_service.py",),
    ),
    Fault(
        "the draw of a replay not checked",
        '[("r", r, found)]',
        '[("r", r, r)]',
        ("test_replay.py",),
    ),
    Fault(
        "dates of features in their local time",
        "np.datetime_as_string(moments(read), ",
        'np.datetime_as_string(read.dt.tz_localize(None).to_numpy("datetime64[us]"), ',
        ("test_service.py",),
    ),
    Fault(
        "missing values served as the first category",
        "-1 if value is None else codes[str(value)]",
        "0 if value is None else codes[str(value)]",
        ("test_service.py",),
    ),
    Fault(
        "a state of a watch that was changed by hand",
        'if values.pop("sha256") != digest_of(values):',
        'if not values.pop("sha256"):',
        ("test_watch_command.py",),
    ),
    Fault(
        "a request without the context",
        'digest_of("forecast", self.context, name, row.sha256)',
        'digest_of("forecast", name, row.sha256)',
        ("test_service.py",),
    ),
    Fault(
        "revisions of people counted over all contexts",
        'return digest_of("person", context, person)',
        'return digest_of("person", person)',
        ("test_service.py",),
    ),
    Fault(
        "draws of requests that are computed together in another order",
        "r = self._draws([one.person for one in every])",
        "r = self._draws([one.person for one in reversed(every)])",
        ("test_service.py",),
    ),
    Fault(
        "features logged with the groups although only their hash was asked for",
        "if self._keeps_features else {}",
        "if self._keeps_features or one.row.groups else {}",
        ("test_service.py",),
    ),
    Fault(
        "the hash of features without zeros",
        "digest_of(features))",
        "digest_of({k: v for k, v in features.items() if v}))",
        ("test_service.py",),
    ),
    Fault(
        "an id in the cause of the message that hides it",
        'write 17.0 as 17") from None',
        'write 17.0 as 17")',
        ("test_service.py",),
    ),
    Fault(
        "0/1 outcomes checked as numbers",
        'case "bernoulli" if y not in (0.0, 1.0):',
        'case "bernoulli" if not 0.0 <= y <= 1.0:',
        ("test_outcomes.py",),
    ),
    # tables, columns and scale
    Fault(
        "numbers of mixed columns in the order of their types",
        "numbers[~text], wrong[~text] = parse_numbers(plain[~text].infer_objects())",
        "numbers[~text], wrong[~text] = parse_numbers(plain[~text].infer_objects().sort_values())",
        ("test_tables.py",),
    ),
    Fault(
        "formulas that begin as a number written as they are",
        "if isinstance(value, str) and FORMULA.match(value) and not NEGATIVE.fullmatch(value):",
        "if isinstance(value, str) and FORMULA.match(value) and not NEGATIVE.match(value):",
        ("test_people.py",),
    ),
    Fault(
        "missing numbers marked present and others missing",
        "np.isnan(numbers[:, marked]), axis=1)",
        "~np.isnan(numbers[:, marked]), axis=1)",
        ("test_encoding.py",),
    ),
    Fault(
        "missing categories merged with unknown ones",
        "absent = unknown + self.had_missing",
        "absent = unknown",
        ("test_encoding.py",),
    ),
    Fault(
        'ids 1 and "1" are two people',
        "before = first.setdefault(id_text(value), row)",
        "before = first.setdefault(value, row)",
        ("test_people.py",),
    ),
    Fault(
        "the markers of missing values beside the first column that has one",
        "np.insert(encoded, marked + 1,",
        "np.insert(encoded, marked[:1] + 1,",
        ("test_encoding.py",),
    ),
    Fault(
        "missing values in the group of the last value",
        "= len(self.groups) - 1 if self.has_missing",
        "= len(self.groups) - 2 if self.has_missing",
        ("test_tables.py",),
    ),
    Fault(
        "groups matched by position although their index differs",
        "if are_indexed and len(values) == len(X) and not values.index.equals(X.index):",
        "if are_indexed and len(values) == len(X) and len(values.index) != len(X.index):",
        ("test_groups.py",),
    ),
    Fault(
        "a rule that leaves out its second condition",
        "inside &= _meets(values, group, place)",
        "inside = _meets(values, group, place)",
        ("test_groups.py",),
    ),
    Fault(
        "codes with leading zeros read as numbers",
        "is_number = there & ~parse_text_numbers(text)[1] & ~is_code",
        "is_number = there & ~parse_text_numbers(text)[1]",
        ("test_columns.py",),
    ),
    Fault(
        "the first row of each person, not a random one, in an audit of parts",
        'ordered = self.rows.sort_values(["chance", "part", "row"], ignore_index=True)',
        'ordered = self.rows.sort_values(["part", "row"])',
        ("test_scale.py",),
    ),
    Fault(
        "draws of blocks the same in each part",
        "spawn_key=(purpose, part, block)",
        "spawn_key=(purpose, 0, block)",
        ("test_scale.py",),
    ),
    Fault(
        "rows of people selected up to seven rows early",
        "return rows[first:last] - start",
        "return (rows[first:last] - start) & ~7",
        ("test_scale.py",),
    ),
    Fault(
        "examples numbered within their parts",
        "found = renumbered(found, starts[part].to_numpy() + row)",
        "found = renumbered(found, row)",
        ("test_scale.py",),
    ),
    Fault(
        "the variance of counts taken as their dispersion",
        "Forecast.from_negative_binomial(mean, (std**2 - mean) / mean**2)",
        "Forecast.from_negative_binomial(mean, std**2 / mean**2)",
        ("test_foreign.py",),
    ),
    Fault(
        "the mean of a randomized forecast at its draw",
        "return base.randomized(self.alpha, self.link, r), point_forecast(base)",
        "return (made := base.randomized(self.alpha, self.link, r)), point_forecast(made)",
        ("test_cli.py",),
    ),
    Fault(
        "new categories read as missing",
        "dtype = pd.CategoricalDtype([*known.values(), *new])",
        "dtype = pd.CategoricalDtype([*known.values()])",
        ("test_columns.py",),
    ),
    Fault(
        "missing values in the upper half where training had none",
        "if self.has_missing else -1",
        "if self.has_missing else 1",
        ("test_watch_groups.py",),
    ),
    Fault(
        "probable members of rows that were left out",
        "(one, values[rows]) for one, values in self.every()",
        "(one, values[: values[rows].size]) for one, values in self.every()",
        ("test_membership.py",),
    ),
    Fault(
        "columns of a csv part in the order of its file",
        "table = table.select(wanted)\n",
        "table = table.select([name for name in table.column_names if name in wanted])\n",
        ("test_parts.py",),
    ),
)


def sites(text: str, package: Path) -> list[Path]:
    """Return the files of the package that contain a text, each as often as it occurs there."""
    files = sorted(package.rglob("*.py"))
    return [file for file in files for _ in range(file.read_text(encoding="utf-8").count(text))]


@contextmanager
def planted(fault: Fault, place: Path) -> Iterator[None]:
    """Put a fault into the copy at a place, and take it out again."""
    found = sites(fault.old, place / PACKAGE)
    if len(found) != 1:
        raise SystemExit(
            f"{fault.name}: the package must contain this once, not {len(found)} times:"
            f" {fault.old!r}"
        )
    text = found[0].read_text(encoding="utf-8")
    found[0].write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    yield
    found[0].write_text(text, encoding="utf-8")


def copy(place: Path) -> None:
    """Copy the package and its tests to a place."""
    for name in ("src", "tests", "reproduction", "docs", "benchmarks", "tools"):
        shutil.copytree(
            ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "_build")
        )
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, place)


# --- as a plugin of pytest in the copy: the tests of each file in the order of their durations

KNOWN = Path("durations.json").absolute()
"""Durations of tests, which the first run writes."""

measured = Counter[str]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests within their files."""
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    files = {path: i for i, path in enumerate(dict.fromkeys(item.path for item in items))}
    items.sort(key=lambda item: (files[item.path], known.get(item.nodeid, 0.0)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the duration of a phase of a test."""
    measured[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    """Write the durations of the first run."""
    if not KNOWN.exists():
        KNOWN.write_text(json.dumps(measured))


# --- the faults, one after the other


def first_failure(tests: Iterable[str], place: Path) -> str:
    """Return the name of the first test that fails, or an empty text."""
    paths = os.pathsep.join([str(place / "src"), str(place / "tools")])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    for name in ("EVENHAND_STATISTICS", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    options = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "plant_faults"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{name}" for name in tests)],
        check=False,
        capture_output=True,
        text=True,
        cwd=place,
        env=environment,
    )
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if run.returncode not in (0, 1) or (run.returncode and not failed):
        raise SystemExit(f"the tests did not run\n{run.stdout}{run.stderr}")
    return failed[0].partition(" - ")[0].removeprefix("FAILED tests/") if failed else ""


def main() -> int:
    """Plant the faults that are asked for and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("faults", nargs="*", help="names, or parts of names; all by default")
    parser.add_argument("--list", action="store_true", help="print the names")
    asked = parser.parse_args()
    chosen = [
        fault
        for fault in FAULTS
        if not asked.faults or any(part in fault.name for part in asked.faults)
    ]
    if asked.list:
        print(*(fault.name for fault in chosen), sep="\n")
        return 0
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copy(place)
        test = first_failure(sorted({name for fault in chosen for name in fault.tests}), place)
        if test:
            raise SystemExit(f"{test} fails without any fault; repair it first")
        for fault in chosen:
            start = time.monotonic()
            with planted(fault, place):
                test = first_failure(fault.tests, place)
            missed += not test
            took = f"{time.monotonic() - start:.0f} s"
            word = "detected" if test else "MISSED  "
            print(f"{word}  {fault.name}  [{test or took}]", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults detected")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
