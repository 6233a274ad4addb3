"""Comparison of two audits of the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from evenhand._format import Summarized, one_line
from evenhand._validate import InputError
from evenhand.audits.result import Audit
from evenhand.audits.tables import EVERYONE
from evenhand.report import Measure, Quantity, comparison_text, difference_in_words

COLUMNS = ("measure", "in_words")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Summarized):
    """Comparison of two audits of the same rows.

    Parameters
    ----------
    table : DataFrame
        One row per measure: `measure`, one column per audit, and `in_words`, the difference as a
        sentence.
    names : tuple of str
        Names of the two audits.
    measures : tuple of Measure
        Measures of the rows of `table`.
    """

    table: pd.DataFrame
    names: tuple[str, str]
    measures: tuple[Measure, ...]

    def __repr__(self) -> str:
        return one_line(self, names=self.names, measures=len(self.table))

    def summary(self) -> str:
        """Return the table as text."""
        return comparison_text(self.table, self.measures, self.names)


def compare(first: Audit, second: Audit) -> Comparison:
    """Compare two audits of the same rows, with a sentence on each difference.

    Parameters
    ----------
    first, second : Audit
        Usually of the deterministic base model and of the randomized forecaster.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If the audits used different rows or groups, or have the same name.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast, audit
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> sharp = Forecast.from_normal(np.zeros(500), np.full(500, 0.5))
    >>> both = {"sharp": sharp, "randomized": sharp.randomized(0.1)}
    >>> found = [audit(forecast, y=y, name=name) for name, forecast in both.items()]
    >>> list(compare(*found).table.columns)
    ['measure', 'sharp', 'randomized', 'in_words']
    """
    sizes = [
        [f"{name} ({n})" for name, n in zip(a.groups["group"], a.groups["n"], strict=True)]
        for a in (first, second)
    ]
    # an audit does not store its rows: different rows nearly always differ in groups or group sizes
    if sizes[0] != sizes[1]:
        one, other = map(", ".join, sizes)
        raise InputError(
            "the two audits used different rows or groups (numbers of rows in brackets):"
            f" {one} in the first, {other} in the second; audit both on the same rows"
        )
    names = (first.name, second.name)
    if names[0] == names[1]:
        raise InputError(f"both audits are named {names[0]!r}; pass a different name= to audit")
    # names become columns of the table
    for name in names:
        if name in COLUMNS:
            raise InputError(
                f"an audit is named {name!r}, which is a column of the comparison; pass another"
                " name= to audit"
            )
    pairs = _aligned(first, second)
    rows = [
        {
            "measure": str(measure),
            names[0]: a,
            names[1]: b,
            "in_words": difference_in_words(measure, a, b, names),
        }
        for measure, (a, b) in pairs
    ]
    return Comparison(pd.DataFrame(rows), names, tuple(measure for measure, _ in pairs))


def _aligned(first: Audit, second: Audit) -> list[tuple[Measure, tuple[float, float]]]:
    """Return each measure that both audits have, with its two values."""
    shared = [measure for measure in first.measures if measure in second.measures]
    # the density of rounded outcomes compares nothing: spikes on the grid raise it without limit
    if any(measure.what == "cell log score" for measure in shared):
        shared = [measure for measure in shared if measure.what != "log score"]
    pairs = [(measure, (first.score(measure), second.score(measure))) for measure in shared]
    for a, b in zip(first.groups.to_dict("records"), second.groups.to_dict("records"), strict=True):
        if a["group"] != EVERYONE:
            name = a["group"]
            pairs.append((Measure("error", group=name), (a["error"], b["error"])))
            covered = Measure("coverage", 0.9, name)
            pairs.append((covered, (a["coverage_90"], b["coverage_90"])))
    for mass in first.worst_groups["mass"]:
        errors = first.worst_group_error(mass), second.worst_group_error(mass)
        pairs.append((Measure("oracle error", mass), errors))
    for a, b in zip(
        first.worst_groups.to_dict("records"), second.worst_groups.to_dict("records"), strict=True
    ):
        # at mass 1 the error itself is compared; without a certificate there is no bound to compare
        if b["mass"] < 1 and np.isfinite([a["certified"], b["certified"]]).all():
            bounds = a["certified"], b["certified"]
            pairs.append((Measure("certified error", b["mass"]), bounds))
    return pairs + _coverage_pairs(first, second)


def _coverage_pairs(first: Audit, second: Audit) -> list[tuple[Measure, tuple[float, float]]]:
    """Return both bounds of the coverage in every group of each size that both audits bound."""
    a, b = (audit.every_group.set_index("mass") for audit in (first, second))
    ends: tuple[tuple[Quantity, str], ...] = (
        ("least coverage", "coverage_80_low"),
        ("most coverage", "coverage_80_high"),
    )
    pairs = [
        (Measure(what, mass), (a[key][mass], b[key][mass]))
        for mass in a.index.intersection(b.index)
        for what, key in ends
        if mass < 1
    ]
    # a level that was not counted has no bound
    return [(measure, bounds) for measure, bounds in pairs if np.isfinite(bounds).all()]
