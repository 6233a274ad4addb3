"""Style of all figures: colours, axes, labels, and tables as lists of rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenhand._escape import visible
from evenhand._format import confidence_in_full, in_full, points_in_full
from evenhand._validate import Floats, bad_input
from evenhand.calibration import HISTOGRAM_CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Records = Sequence[Mapping[str, Any]] | pd.DataFrame
    Legend = Literal["best", "above", "upper center", "upper right"]

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#757575"
"""Colours that people with any kind of colour vision can distinguish (Okabe and Ito); series also
differ in markers and dashes."""

LABEL_LENGTH = 40
"""Most characters of a label."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML nor HTML allows."""


def plain_label(text: Any) -> str:
    r"""Return a name from data as a label: one line of at most 40 characters, no mathematics.

    Examples
    --------
    >>> print(plain_label("$a_b$"))
    \$a_b\$
    """
    line = " ".join(printable(text).split())
    if len(line) > LABEL_LENGTH:
        line = line[: LABEL_LENGTH - 1].rstrip() + "…"
    # matplotlib reads text between two dollar signs as mathematics
    return line.replace("$", r"\$")


def printable(text: Any) -> str:
    """Return a text from data with format characters escaped and without those XML forbids."""
    return visible(_UNPRINTABLE.sub("\ufffd", str(text)), "\t\n\r")


def tidy(axes: Axes, grid: Literal["x", "y"], legend: Legend | None = None) -> None:
    """Remove the frame at the top and right, and draw grid lines along the `"x"` or `"y"` axis.

    `legend` is the place of a legend of what has a label, if anything has one: within the axes, or
    above them where nothing is drawn.
    """
    if legend is not None and axes.get_legend_handles_labels()[1]:
        place: Any = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        place = place if legend == "above" else {"loc": legend}
        axes.legend(**place, edgecolor="none", framealpha=1, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#dddddd", linewidth=0.8)
    # grid lines behind everything, bars and markers included
    axes.set_axisbelow(True)


def as_points(value: float, _: float) -> str:
    """Return a fraction in percentage points: a formatter of ticks for matplotlib."""
    return points_in_full(_tick(value))


def as_percent(value: float, _: float) -> str:
    """Return a fraction in percent: a formatter of ticks for matplotlib."""
    return in_full(_tick(value))


def _tick(value: float) -> float:
    # ticks are multiples of a step, and 5 * 0.2 may be a little more than 1
    return round(value, 12)


def as_rows(name: str, records: Records) -> list[Mapping[str, Any]]:
    """Return the rows of a table; raise InputError if there are none."""
    rows: list[Any] = list(records) if isinstance(records, Sequence) else records.to_dict("records")
    if not rows:
        raise bad_input(name, "contain at least one row", "none")
    return rows


def column(rows: list[Mapping[str, Any]], key: str) -> Floats:
    """Return one column of numbers, NaN where it is missing."""
    return np.array([np.nan if row.get(key) is None else float(row[key]) for row in rows])


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure, in inches, without touching the state of pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # a figure with its own canvas: pyplot would keep it alive and may open a window
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or the axes of a new figure, whose size is in inches."""
    return new_figure(size).add_subplot() if ax is None else ax


def whiskers(middle: Floats, low: Floats, high: Floats) -> Floats:
    """Return the lengths of both arms of error bars, shape (2, n); 0 where an end is unknown."""
    return np.nan_to_num(np.stack([middle - low, high - middle])).clip(0)


# --- titles of axes and labels of series that figures and reports have in common

PIT_TITLE = "Predicted probability of an outcome this low (PIT)"
OUTCOMES_TITLE = "Share of outcomes"
PIT_BAND = f"simultaneous {confidence_in_full(HISTOGRAM_CONFIDENCE)} band under calibration"

ERROR_TITLE = "Calibration error (percentage points)"
SIZE_TITLE = "Group size (share of people)"
PRICE_TITLE = "Price: loss in log score (nats)"

ORACLE = "oracle (chosen after seeing the outcomes)"
SAME_SEARCH = "the same search in calibrated forecasts"
CERTIFIED = "certified upper bound for every group of at least this size"
LEARNED = "learned from features, with lower bound"
