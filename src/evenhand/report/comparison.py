"""Comparison of two audits, with each difference in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evenhand._format import (
    Show,
    at_least,
    at_most,
    in_full,
    nats,
    number,
    percent,
    points,
)
from evenhand._table import Column, Table, numeric
from evenhand.report.document import Sentence
from evenhand.report.findings import MASS
from evenhand.report.measures import UNITS, Measure, Quantity, formatter_of, reach_of, signed
from evenhand.report.records import Values

LOSSES: tuple[Quantity, ...] = (
    "log score",
    "cell log score",
    "CRPS",
    "log loss",
    "Brier score",
)
"""Scores of which smaller values are better."""

SIZES = {
    "CRPS": ("CRPS is", ("worse", "better", "large")),
    "log loss": ("log loss is", ("worse", "better", "large")),
    "Brier score": ("the Brier score is", ("worse", "better", "large")),
    "mean std": ("the predicted std is", ("larger", "smaller", "large")),
    "interval width": ("prediction intervals are", ("wider", "narrower", "wide")),
}
"""Subjects of sentences on measures that are compared by ratios, and the words for these."""

OTHER_SIZE = ("the value is", ("larger", "smaller", "large"))
"""The same for other measures."""

BOUNDS: dict[str, Callable[[float | None, Show], str]] = {
    "certified error": at_most,
    "least coverage": at_least,
    "most coverage": at_most,
}
"""Measures that are certified bounds, and how they are printed."""


def certified_sentences(values: Values, measures: Sequence[Measure]) -> list[Sentence]:
    """Return the bounds for every group of the size of a verdict, if one needs a draw."""
    return [
        Sentence(
            f"Certified for every group of at least {in_full(measure.level)} of people: off by at"
            f" most {at_most(row['before'])} points before, {at_most(row['after'])} points after."
        )
        for measure, row in zip(measures, values["measures"], strict=True)
        if measure.what == "certified error"
        and math.isclose(measure.level, MASS)
        # without a draw no bound is below this one (method: sharp certificate)
        and min(row["before"], row["after"]) < (1 - MASS) / 2
    ]


def score_sentences(values: Values, measures: Sequence[Measure]) -> list[Sentence]:
    """Return sentences on the changes of scores whose intervals exclude 0."""
    losses = {str(measure) for measure in measures if measure.what in LOSSES}
    found = []
    for row in values["scores"]:
        if row["low"] > 0 or row["high"] < 0:
            words = ("worse", "better") if row["measure"] in losses else ("larger", "smaller")
            change = signed(row["change"], number)
            reach = reach_of(row["low"], row["high"], number)
            found.append(
                Sentence(
                    f"Overall, {row['measure']} got {words[row['change'] < 0]}: from"
                    f" {number(row['before'])} to {number(row['after'])} (change {change},"
                    f" pointwise {reach})."
                )
            )
    return found


def measures_table(values: Values, measures: Sequence[Measure]) -> Table:
    """Return the table of all measures of two audits, with a sentence on each.

    `values` are those of `Comparison.to_dict()`.
    """
    rows = [
        [
            str(row["measure"]),
            *(_compared(measure, row[key]) for key in ("before", "after")),
            row["in_words"],
        ]
        for measure, row in zip(measures, values["measures"], strict=True)
    ]
    columns = [Column("measure"), *map(numeric, values["names"]), Column("in words")]
    return Table("Comparison", columns, rows)


def _compared(measure: Measure, value: float | None) -> str:
    show = formatter_of(UNITS.get(measure.what))
    rounded = BOUNDS.get(measure.what)
    shown = show(value) if rounded is None else rounded(value, show)
    return f"{shown} points" if show is points else shown


def difference_in_words(
    measure: Measure, first: float, second: float, names: tuple[str, str]
) -> str:
    """Return a sentence on the difference of a measure between two forecasters."""
    if measure.what in BOUNDS:
        return _bounds_in_words(measure, first, second, names)
    # log scores may be negative: their differences are meaningful, their ratios are not
    if measure.what in ("log score", "cell log score"):
        return _sharpness_in_words(second - first, names)
    if measure.what in UNITS and measure.what not in SIZES:
        return _share_in_words(measure, first, second)
    subject, words = SIZES.get(measure.what, OTHER_SIZE)
    return f"{subject} {_ratio(first, second, words)}"


def _bounds_in_words(measure: Measure, first: float, second: float, names: tuple[str, str]) -> str:
    """Return both bounds in words: their difference is no bound of the difference."""
    rounded = BOUNDS[measure.what]
    show = formatter_of(UNITS[measure.what])
    bound = f"{'at least' if rounded is at_least else 'at most'} {rounded(second, show)}"
    text = (
        f"{bound} points in every such group" if show is points else f"80% intervals cover {bound}"
    )
    return f"{text}; {names[0]}: {rounded(first, show)}"


def _share_in_words(measure: Measure, first: float, second: float) -> str:
    """Return the difference of two errors or coverages in words."""
    is_coverage = measure.what in ("coverage", "whole coverage")
    show = percent if is_coverage else points
    before, now = show(first), show(second)
    # compared as printed, to avoid "5.0, up from 5.0"
    change = "unchanged" if before == now else f"{'up' if second > first else 'down'} from {before}"
    if is_coverage:
        whole = " of whole values" if measure.what == "whole coverage" else ""
        intervals = f"{in_full(measure.level)} prediction intervals{whole}"
        return f"{intervals} cover {now} of outcomes, {change}"
    return f"predicted probabilities are off by {now} points, {change}"


def _sharpness_in_words(gap: float, names: tuple[str, str]) -> str:
    # gaps that would be printed as 0.00
    if abs(gap) < 0.005:
        return f"the log score of {names[1]} equals that of {names[0]}"
    return f"the log score of {names[1]} is {nats(abs(gap))} {'worse' if gap > 0 else 'better'}"


def _ratio(first: float, second: float, words: tuple[str, str, str]) -> str:
    """Compare two values: "20% wider", "20% narrower", "2.1 times as wide", "about as wide"."""
    more, less, plain = words
    if first == second:
        return f"about as {plain}"
    # a forecaster without spread has width 0: the ratio is infinite
    ratio = second / first if first else math.inf
    if ratio == math.inf:
        return f"infinitely {more}"
    if ratio >= 2:
        return f"{ratio:.1f} times as {plain}"
    # below half a percent, which would be printed as 0%
    if abs(ratio - 1) < 0.005:
        return f"about as {plain}"
    return f"{percent(abs(ratio - 1), decimals=0)} {more if ratio > 1 else less}"
