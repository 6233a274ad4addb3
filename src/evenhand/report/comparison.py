"""Two audits side by side, with the difference in each measure in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand._format import at_most, in_full, nats, number, percent, points
from evenhand._table import Column, Table, numeric
from evenhand.report.measures import UNITS, Measure

if TYPE_CHECKING:
    import pandas as pd

SIZES = {
    "CRPS": (
        "its whole distribution is",
        " the outcome",
        ("farther from", "nearer to", "far from"),
    ),
    "mean std": ("a person's forecast is", "", ("wider", "narrower", "wide")),
    "interval width": ("a person's interval is", "", ("wider", "narrower", "wide")),
}
"""Parts of sentences on measures in units of the outcome: before and after the ratio, its words."""

PLAIN_SIZE = ("it is", "", ("larger", "smaller", "large"))
"""The same for such a measure that has no sentence of its own."""


def comparison_text(
    table: pd.DataFrame, measures: Sequence[Measure], names: tuple[str, str]
) -> str:
    """Render two audits side by side, with a sentence on each measure."""
    rows = [
        [str(row["measure"]), *(_compared(measure, row[name]) for name in names), row["in_words"]]
        for measure, row in zip(measures, table.to_dict("records"), strict=True)
    ]
    columns = [Column("measure"), *map(numeric, names), Column("in plain words")]
    return Table("Comparison", columns, rows).text()


def _compared(measure: Measure, value: float) -> str:
    return at_most(value, number) if measure.what == "certified error" else number(value)


def difference_in_words(
    measure: Measure, first: float, second: float, names: tuple[str, str]
) -> str:
    """Return in one sentence what the second forecaster changes in a measure."""
    # a difference of two bounds is no bound of the difference, so both are named
    if measure.what == "certified error":
        return (
            f"proven for any such group: off by at most {at_most(second)} points; of {names[0]}"
            f" {at_most(first)}"
        )
    # log scores may be negative: their difference has a meaning, their ratio has none
    if measure.what in ("log score", "cell log score"):
        return _sharpness_in_words(second - first, names)
    if measure.what in UNITS:
        return _share_in_words(measure, first, second)
    before, after, words = SIZES.get(measure.what, PLAIN_SIZE)
    return f"{before} {_ratio(first, second, words)}{after}"


def _share_in_words(measure: Measure, first: float, second: float) -> str:
    """Return the difference of two errors or coverages."""
    # compared as printed: "up from 5.0" must not stand beside 5.0
    before = _points(first)
    now = _points(second)
    change = "as before" if before == now else f"{'up' if second > first else 'down'} from {before}"
    if measure.what == "coverage":
        percent = "" if before == now else "%"
        level = in_full(measure.level)
        return f"a stated {level} interval holds {now}% of outcomes, {change}{percent}"
    return f"stated chances are off by {now} points, {change}"


def _sharpness_in_words(gap: float, names: tuple[str, str]) -> str:
    # gaps that would be printed as 0.00
    if abs(gap) < 0.005:
        return f"{names[1]} is as sharp as {names[0]}"
    return f"{names[1]} is {nats(abs(gap))} {'less sharp' if gap > 0 else 'sharper'}"


def _ratio(first: float, second: float, words: tuple[str, str, str]) -> str:
    """Compare two values: "20% wider", "20% narrower", "2.1 times as wide", "about as wide"."""
    more, less, plain = words
    if first == second:
        return f"about as {plain}"
    # a forecaster without spread has width 0, of which everything is infinitely many times
    ratio = second / first if first else math.inf
    if ratio == math.inf:
        return f"beyond comparison {more}"
    if ratio >= 2:
        return f"{ratio:.1f} times as {plain}"
    if abs(ratio - 1) < 0.005:
        return f"about as {plain}"
    return f"{percent(abs(ratio - 1), decimals=0)} {more if ratio > 1 else less}"


def _points(share: float) -> str:
    # two digits suffice to compare estimates: 9.9, then 10
    return percent(share, decimals=0).removesuffix("%") if share >= 0.0995 else points(share)
