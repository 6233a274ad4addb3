"""Plant faults in a copy of the package, one at a time, and report those that no test detects.

    python tools/plant_faults.py              all faults
    python tools/plant_faults.py FAULT ...    some of them, by name
    python tools/plant_faults.py --list       their names

Each fault is a slip that a reviewer may overlook, in code that guarantees depend on. Its tests are
named, so that a fault takes seconds and not the minutes of the whole suite; they run in the short
form of `make test`, with an eighth of the repeats of statistical tests. The exit code is the number
of faults that no test detected.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

CERTIFICATES = ("test_certificates.py", "test_counts.py", "test_golden.py")
LINKS = ("test_links.py", "test_links_theory.py")
STORE = ("test_forged.py", "test_store.py")


@dataclass(frozen=True)
class Fault:
    """A slip in one file: `old`, which stands there once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "Bonferroni by one group too few",
        "certificates/pit_certificate.py",
        "group.error_interval(1 - (1 - self.confidence) / len(names))",
        "group.error_interval(1 - (1 - self.confidence) / max(len(names) - 1, 1))",
        CERTIFICATES,
    ),
    Fault(
        "both ends of coverage at the whole risk",
        "certificates/pit_certificate.py",
        "mass, 1.0, 1 - risk * (1 - LOW_SHARE))",
        "mass, 1.0, 1 - risk)",
        CERTIFICATES,
    ),
    Fault(
        "the error of everybody and the band at the whole risk each",
        "certificates/pit_certificate.py",
        "confidence = 1 - (1 - self.confidence) * (1 - AVERAGE_SHARE)",
        "confidence = self.confidence",
        CERTIFICATES,
    ),
    Fault(
        "a two-sided DKW band with the margin of a one-sided one",
        "calibration/intervals.py",
        "np.log(2 / (1 - confidence))",
        "np.log(1 / (1 - confidence))",
        ("test_bands.py", "test_certificates.py"),
    ),
    Fault(
        "a two-sided Clopper-Pearson interval with one-sided tails",
        "calibration/intervals.py",
        "tail = (1 - confidence) / 2",
        "tail = 1 - confidence",
        ("test_bands.py", "test_calibration.py", "test_audits.py", "test_loss_guarantee.py"),
    ),
    Fault(
        "ties of a threshold left out of mPAIC",
        "certificates/evidence.py",
        "hits = self.values >= threshold",
        "hits = self.values > threshold",
        CERTIFICATES,
    ),
    Fault(
        "groups of all rows for one row of each person",
        "certificates/evidence.py",
        "        pits = pits.take(rows)\n        masks = {name: mask[rows]",
        "        masks = {name: mask[rows]",
        CERTIFICATES,
    ),
    Fault(
        "errors of counted people at the lower ends of their bins",
        "certificates/evidence.py",
        "np.arange(1, ERROR_BINS + 1) / (2 * ERROR_BINS)",
        "np.arange(ERROR_BINS) / (2 * ERROR_BINS)",
        ("test_counts.py",),
    ),
    Fault(
        "a tested target quoted for smaller groups too",
        "certificates/fixed_sequence_certificate.py",
        "return self.target if mass >= self.mass else WORST",
        "return self.target if mass <= self.mass else WORST",
        ("test_selection.py",),
    ),
    Fault(
        "rows of one person all used for a certificate of links",
        "certificates/link_certification.py",
        "        rows = one_row_each(cluster, u.size, random_state)\n",
        "        rows = np.arange(u.size)\n",
        ("test_any_link.py", "test_selection.py"),
    ),
    Fault(
        "people who were lost counted as 0 instead of at both ends",
        "certificates/link_certification.py",
        "np.where(unknown, 1.0, u))",
        "np.where(unknown, 0.0, u))",
        ("test_times_certificates.py",),
    ),
    Fault(
        "people who were lost counted at the smaller end of their errors",
        "certificates/times_evidence.py",
        "np.maximum(*ends)",
        "np.minimum(*ends)",
        ("test_times_certificates.py",),
    ),
    Fault(
        "half a cell of draws not added to a probability of a miss",
        "certificates/link_certificate.py",
        "self._largest_so_far(near, far) + 1 / CELLS",
        "self._largest_so_far(near, far)",
        ("test_any_link.py",),
    ),
    Fault(
        "probabilities of a miss read where the band steps, without the largest so far",
        "certificates/link_certificate.py",
        "return np.maximum.accumulate(sums)[",
        "return sums[",
        ("test_any_link.py",),
    ),
    Fault(
        "the least alpha by the approximate errors of the search",
        "certificates/least_alpha.py",
        "while bound_at(alpha) > max_group_error:",
        "while evidence.searched(family, mass)(alpha) > max_group_error:",
        ("test_any_link.py", "test_selection.py"),
    ),
    Fault(
        "a band of a CDF read at a value, not just below it",
        "calibration/cdf_bands.py",
        'np.searchsorted(self.starts, u, side="right") - 1',
        'np.maximum(np.searchsorted(self.starts, u, side="left") - 1, 0)',
        ("test_sharp.py", "test_event_certificates.py"),
    ),
    Fault(
        "event rates from the upper ends of binned probabilities",
        "certificates/event_certificate.py",
        "np.where(possible, low, 1.0)",
        "np.where(possible, high, 1.0)",
        ("test_event_certificates.py",),
    ),
    Fault(
        "group sizes of event rates as shares of the people with a low forecast",
        "certificates/event_certificate.py",
        "min(float(share) / mass, 1.0)",
        "min(float(share) / (mass * float(np.mean(self.probability <= below))), 1.0)",
        ("test_event_certificates.py",),
    ),
    Fault(
        "the bound of a link for forecasts of counts",
        "certificates/certification.py",
        "has_bounds = base is not None and outcome is OutcomeKind.CONTINUOUS",
        "has_bounds = base is not None",
        ("test_certificates_of_atoms.py",),
    ),
    Fault(
        "group errors of a hurdle from all people",
        "certificates/hurdle_certificate.py",
        "return self.positive.group_error(mass)",
        "return super().group_error(mass)",
        ("test_certificates_of_atoms.py",),
    ),
    Fault(
        "the whole risk for each of two bands",
        "calibration/cdf_bands.py",
        "each = (1 + confidence) / 2",
        "each = confidence",
        ("test_sharp.py",),
    ),
    Fault(
        "a bound for every group from its lower tail alone",
        "certificates/contraction.py",
        "np.maximum(above, below)",
        "above",
        ("test_sharp.py",),
    ),
    Fault(
        "a sign change only at the edges of cells",
        "certificates/contraction.py",
        "caps = cap(heights.mean, right[:, None], low[:, None])",
        "caps = cap(heights.mean, left[:, None], heights.low[np.clip(first, 0, k)][:, None])",
        ("test_sharp.py",),
    ),
    Fault(
        "served PITs at the upper ends of the cells of draws",
        "certificates/pointwise.py",
        "np.maximum(np.arange(DRAWS) / DRAWS, 2.0**-60)",
        "np.minimum(np.arange(1, DRAWS + 1) / DRAWS, 1 - 2.0**-53)",
        ("test_sharp.py",),
    ),
    Fault(
        "a band that is left by as many ranks as there are, not one fewer",
        "calibration/bands.py",
        "np.asarray(betaincinv(ranks, n - ranks + 1, -np.expm1(log_level))",
        "np.asarray(betaincinv(ranks, n - ranks + 2, -np.expm1(log_level))",
        ("test_bands.py",),
    ),
    Fault(
        "a band whose steps begin one rank late",
        "calibration/bands.py",
        "np.searchsorted(upto[1:], n - ranks + 1)",
        "np.searchsorted(upto[1:], n - ranks)",
        ("test_bands.py",),
    ),
    Fault(
        "a sign in the price of a Laplace link",
        "links/laplace.py",
        "log_z).sum() - self.kappa * self.mean_error",
        "log_z).sum() + self.kappa * self.mean_error",
        LINKS,
    ),
    Fault(
        "a sign in the paper's trivial forecaster, as it is printed",
        "links/gaussian.py",
        "special.log_ndtr(self._rest * _score(log_u) + self.rho * _draw_score(r))",
        "special.log_ndtr(self._rest * _score(log_u) - self.rho * _draw_score(r))",
        LINKS,
    ),
    Fault(
        "reflection of a link that keeps the draw",
        "links/base.py",
        "lower(log_value, np.where(upper, 1 - r, r))",
        "lower(log_value, r)",
        LINKS,
    ),
    Fault(
        "the worst people of a link in one tail only",
        "links/base.py",
        "np.geomspace(1e-6, 1.0, 13))) * mass / 2, order=8",
        "np.geomspace(1e-6, 1.0, 13))) * mass, order=8",
        LINKS,
    ),
    Fault(
        "the integral of the mean PIT reflected without its linear part",
        "links/base.py",
        "values - 0.5 + low, low)",
        "0.5 - low, low)",
        ("test_mean_pit.py",),
    ),
    Fault(
        "panels of the mean PIT that are not refined at the median",
        "links/mean_pit.py",
        "3.0 ** np.arange(-6, 0)",
        "3.0 ** np.arange(-1, 0)",
        ("test_mean_pit.py",),
    ),
    Fault(
        "a group error of laplace below that of everybody",
        "links/base.py",
        "max(tail, self.calibration_error)",
        "tail",
        LINKS,
    ),
    Fault(
        "draws that are not bound to their context",
        "draws.py",
        'self._hash.update(len(prefix).to_bytes(8, "big") + prefix)',
        'self._hash.update(len(prefix).to_bytes(8, "big"))',
        ("test_draws.py",),
    ),
    Fault(
        "context and id not separated",
        "draws.py",
        'len(prefix).to_bytes(8, "big") + prefix',
        "prefix",
        ("test_draws.py",),
    ),
    Fault(
        "a fingerprint under the personalization of the draws",
        "draws.py",
        'person=b"evenhand key").digest()',
        'person=b"evenhand draw").digest()',
        ("test_draws.py", "test_golden.py"),
    ),
    Fault(
        "the first row of each person, not a random one",
        "draws.py",
        "generator(random_state).permutation(n_samples)",
        "np.arange(n_samples)",
        ("test_draws.py", "test_certificates.py"),
    ),
    Fault(
        "midpoints for jittered draws",
        "draws.py",
        "np.clip((cells + uniform) / m",
        "np.clip((cells + 0.5 + 0 * uniform) / m",
        ("test_draws.py",),
    ),
    Fault(
        "the hash of a file not compared",
        "store/manifest.py",
        'if digest(content) != file["sha256"]:',
        'if len(digest(content)) != len(file["sha256"]):',
        STORE,
    ),
    Fault(
        "the seal of the manifest not compared",
        "store/manifest.py",
        "if digest(text.replace(seal, _UNSEALED, 1).encode()) != seal:",
        "if len(seal) != len(_UNSEALED):",
        STORE,
    ),
    Fault(
        "files outside the model folder opened",
        "store/manifest.py",
        'if Path(name).name != name or name in ("", ".", ".."):',
        'if name in ("", ".", ".."):',
        STORE,
    ),
    Fault(
        "a newer format read as this one",
        "store/manifest.py",
        "if version > FORMAT:",
        "if version > FORMAT + 1:",
        STORE,
    ),
    Fault(
        "Holm's multipliers one too small",
        "calibration/multiple_tests.py",
        "np.arange(order.size, 0, -1)",
        "np.arange(order.size - 1, -1, -1)",
        ("test_scan.py",),
    ),
    Fault(
        "binomial tails also within one event of their mean",
        "calibration/group_sums.py",
        "bound = np.where(number >= np.maximum(mean + 1, 1.0), tail, 1.0)",
        "bound = np.where(number >= 1.0, tail, 1.0)",
        ("test_event_tests.py",),
    ),
    Fault(
        "a p-value from one tail",
        "calibration/event_sums.py",
        "return float(min(1.0, 2 * min(tails) + 1e-13))",
        "return float(min(1.0, min(tails) + 1e-13))",
        ("test_own_forecast.py", "test_event_tests.py"),
    ),
    Fault(
        "negative weights of a sum of events keep the order of its distribution",
        "calibration/event_sums.py",
        "spread[:: abs(w)] = own if w > 0 else own[::-1]",
        "spread[:: abs(w)] = own",
        ("test_own_forecast.py",),
    ),
    Fault(
        "weights of the trend about their plain mean",
        "calibration/event_sums.py",
        "variance = weights * probability * (1 - probability)\n    total",
        "variance = weights * np.ones_like(probability)\n    total",
        ("test_own_forecast.py",),
    ),
    Fault(
        "an upper end without the margin of its mean",
        "calibration/own_forecast.py",
        "    return most\n\n\ndef _least_rate",
        "    return 0.0\n\n\ndef _least_rate",
        ("test_own_forecast.py",),
    ),
    Fault(
        "an upper end of the groups by score alone",
        "calibration/own_forecast.py",
        "max(measured, largest_signed_mean(event, probability))",
        "max(measured, 0.0)",
        ("test_own_forecast.py",),
    ),
    Fault(
        "equal forecasts in two groups",
        "calibration/own_forecast.py",
        "_, place = np.unique(values, return_inverse=True)",
        "place = np.argsort(np.argsort(values, kind='stable'))",
        ("test_own_forecast.py",),
    ),
    Fault(
        "weighted tests with a centred variance",
        "calibration/group_sums.py",
        "variance = max(float((values**2).sum()), least_variance)",
        "variance = max(float(((values - values.mean()) ** 2).sum()), least_variance)",
        ("test_own_forecast.py",),
    ),
    Fault(
        "tests of everyone without a correction for their number",
        "calibration/own_forecast.py",
        "return min(1.0, len(self.tests) * min(self.tests.values()))",
        "return min(1.0, min(self.tests.values()))",
        ("test_own_forecast.py", "test_verdicts.py"),
    ),
    Fault(
        "the share of absent parts of a family is given twice",
        "audits/group_tests.py",
        "fifths[name] += free / len(first)",
        "fifths[name] += free",
        ("test_simultaneous.py", "test_verdicts.py"),
    ),
    Fault(
        "a significant slope far from 1 is no problem",
        "audits/decisions.py",
        "is_beyond |= (slope < SLOPES[0]) | (slope > SLOPES[1])",
        "is_beyond |= slope > SLOPES[1]",
        ("test_verdicts.py",),
    ),
    Fault(
        "a tolerance of 2 points for rare events",
        "audits/options.py",
        "return min(TOLERANCE, min(probability, 1 - probability) / 5)",
        "return TOLERANCE",
        ("test_verdicts.py",),
    ),
    Fault(
        "a single event is no evidence",
        "calibration/group_sums.py",
        "return np.asarray(np.where(number == 1, np.minimum(mean, 1.0), bound))",
        "return np.asarray(bound)",
        ("test_event_tests.py",),
    ),
    Fault(
        "intervals of events where Y - P varies more than they do",
        "calibration/simultaneous.py",
        "factor = np.sqrt(np.maximum(ratio, 1.0))",
        "factor = np.ones_like(ratio)",
        ("test_event_tests.py",),
    ),
    Fault(
        "simultaneous intervals at the level of a single group",
        "calibration/simultaneous.py",
        "tail = level / (2 * max(n_groups, 1))",
        "tail = level / 2",
        ("test_simultaneous.py",),
    ),
    Fault(
        "upper ends of errors by the variance of uniform PITs",
        "calibration/simultaneous.py",
        "1 / 12 + error - 2 / 3 * error**1.5",
        "1 / 12 + 0 * error",
        ("test_simultaneous.py",),
    ),
    Fault(
        "paired intervals of many groups at the level of one",
        "audits/paired.py",
        "tail = (1 - confidence) / (2 * n_intervals)",
        "tail = (1 - confidence) / 2",
        ("test_compare.py",),
    ),
    Fault(
        "p-values of the larger of two statistics, not doubled",
        "calibration/group_sums.py",
        "np.minimum(2 * special.erfc(",
        "np.minimum(1 * special.erfc(",
        ("test_scan.py",),
    ),
    Fault(
        "a null of deterministic forecasts where a link was given",
        "search/null_distribution.py",
        "return PITs(base if link is None else link.ppf(base, jittered(n, m, random)))",
        "return PITs(base)",
        ("test_worst.py",),
    ),
    Fault(
        "a null that is not scaled to the rows",
        "search/null_distribution.py",
        "*= np.sqrt(n / pits.n_samples)",
        "*= 1.0",
        ("test_worst.py",),
    ),
    Fault(
        "a lower bound of bets with the stake's sign in the logarithm",
        "search/mean_bound.py",
        "np.log1p(stakes * theta)",
        "stakes * theta - (stakes * theta) ** 2",
        ("test_learned.py",),
    ),
    Fault(
        "a learned group judged by rows that it was learned from",
        "search/learned_group.py",
        "n_learned = min(start, LEARNING_ROWS)",
        "n_learned = min(pit.shape[0], LEARNING_ROWS)",
        ("test_learned.py",),
    ),
    Fault(
        "a detection test with half its p-value",
        "search/detection.py",
        "0.5 * math.erfc(",
        "0.25 * math.erfc(",
        ("test_detection.py",),
    ),
    Fault(
        "a tree whose larger node has the sums of the smaller one",
        "search/cut_trees.py",
        "return np.asarray(parent.right - sibling.right)",
        "return np.asarray(sibling.right)",
        ("test_detection.py",),
    ),
    Fault(
        "a bound printed rounded down",
        "_format.py",
        'return show(value, "up")',
        'return show(value, "nearest")',
        ("test_format.py",),
    ),
    Fault(
        "the pathwise error of a weighted sample without its weights",
        "calibration/errors.py",
        "np.cumsum(weights[places // m])",
        "np.cumsum(weights[places // m] * 0 + 1)",
        ("test_calibration.py",),
    ),
    Fault(
        "a chosen model certified on rows that it learned from",
        "selection/link_choice.py",
        "    X, y = rows.certifying()\n",
        "    X, y = rows.learning()\n",
        ("test_selection.py",),
    ),
    Fault(
        "the confidence of a choice not handed on",
        "selection/chosen_link.py",
        "pit, family, confidence=target.confidence, bound",
        "pit, family, bound",
        ("test_selection.py",),
    ),
    Fault(
        "weights not handed on to a recalibration",
        "selection/link_choice.py",
        "*rows.learning(), rows.learning_weight, **rows.learning_times()",
        "*rows.learning(), **rows.learning_times()",
        ("test_selection.py",),
    ),
    Fault(
        "a certificate for other columns of the same kind",
        "cli/certified_columns.py",
        "    rest = columns[first:]",
        "    rest = sorted(columns[first:])",
        ("test_randomize_command.py",),
    ),
    Fault(
        "links of counts tested on after a failure",
        "selection/lattices.py",
        "            break",
        "            continue",
        ("test_selection_kinds.py",),
    ),
    Fault(
        "the risk of affordable links of counts not shared",
        "selection/lattices.py",
        "tests.bound(link, 1 - risk)",
        "tests.bound(link, target.confidence)",
        ("test_selection_kinds.py",),
    ),
    Fault(
        "the price beside an atom not a mean over all people",
        "selection/hurdles.py",
        "return self.share * self.inside.price(link)",
        "return self.inside.price(link)",
        ("test_selection_kinds.py",),
    ),
    Fault(
        "rounded outcomes scored by their densities",
        "calibration/scores.py",
        "return cell_log_score(forecast, y, grid.step, grid.span)",
        "return log_score(forecast, y)",
        ("test_scoring.py",),
    ),
    Fault(
        "the price of rounded outcomes from points",
        "selection/costs.py",
        "losses = np.where(np.isfinite(in_cells), in_cells, losses)",
        "losses = np.where(np.isfinite(in_cells), losses, losses)",
        ("test_selection.py",),
    ),
    Fault(
        "new rows without the certified link",
        "cli/randomizing.py",
        'subject, served["link"] = certified_forecasts(certificate, subject, parts)',
        "certified_forecasts(certificate, subject, parts)",
        ("test_randomize_command.py",),
    ),
    Fault(
        "maps without their horizon",
        "cli/recalibrating.py",
        "subject = replace(subject, horizon=horizon)",
        "subject = replace(subject)",
        ("test_times_command.py",),
    ),
    Fault(
        "the event column among the searched columns",
        "cli/audit_request.py",
        "apart = {*parts, *self.times.roles}",
        "apart = {*parts} - {*self.times.roles}",
        ("test_times_command.py",),
    ),
    Fault(
        "ramps that never cross the diagonal",
        "calibration/ramps.py",
        "        both *= both\n        both /= size + 1e-300  # instead of 0 / 0\n",
        "        both = np.abs(both)\n",
        ("test_cells.py",),
    ),
    Fault(
        "all PITs in the middle of their cells",
        "calibration/pits.py",
        "share[:, None] * (ends[1]",
        "0.5 * (ends[1]",
        ("test_cell_measures.py",),
    ),
    Fault(
        "a null without the cells of simulated outcomes",
        "search/null_distribution.py",
        "if simulate is None else simulate(random)",
        "if n else simulate(random)",
        ("test_discrete_search.py",),
    ),
    Fault(
        "the left limit of a randomized count at the count itself",
        "distributions/randomized.py",
        "left=self.has_atoms), of_upper=False)",
        "left=False), of_upper=False)",
        ("test_atoms.py",),
    ),
    Fault(
        "the atom of a hurdle randomized with the rest",
        "forecast/forecast.py",
        "        if self.outcome_kind is not OutcomeKind.HURDLE:\n            return Forecast(Rand",
        "        if not self.is_randomized:\n            return Forecast(Rand",
        ("test_outcome_kinds.py",),
    ),
    Fault(
        "a slope of log odds around 0, not around their mean",
        "forecasters/events.py",
        "slope * (odds - self.center)",
        "slope * odds",
        ("test_recalibrated_kinds.py",),
    ),
)


def copy(place: Path) -> None:
    """Copy the package and its tests to a place."""
    for name in ("src", "tests", "reproduction", "docs", "benchmarks", "tools"):
        shutil.copytree(
            ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "_build")
        )
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, place)


def plant(fault: Fault, place: Path) -> None:
    """Put a fault into the copy at a place."""
    path = place / "src" / "evenhand" / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.file} must contain this once, to plant a fault: {fault.old!r}")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")


def first_failure(tests: Iterable[str], place: Path) -> str:
    """Return the name of the first test that fails, or an empty text."""
    environment = os.environ | {"PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1"}
    environment.pop("EVENHAND_STATISTICS", None)
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
    run = subprocess.run(
        pytest + [f"tests/{name}" for name in tests],
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


def check_without_faults(faults: Iterable[Fault]) -> None:
    """Check that the tests pass as long as no fault is planted."""
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(folder))
        test = first_failure(
            sorted({name for fault in faults for name in fault.tests}), Path(folder)
        )
    if test:
        raise SystemExit(f"{test} fails without any fault; repair it first")


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
    check_without_faults(chosen)
    missed = 0
    for fault in chosen:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            copy(Path(folder))
            plant(fault, Path(folder))
            test = first_failure(fault.tests, Path(folder))
        missed += not test
        took = f"{time.monotonic() - start:.0f} s"
        print(f"{'detected' if test else 'MISSED  '}  {fault.name}  [{test or took}]", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults detected")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
