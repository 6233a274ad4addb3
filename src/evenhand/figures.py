"""Figures of audit results, as matplotlib axes. The numbers are computed in other rooms.

Errors are fractions, and their axes are labelled in percentage points. matplotlib is imported when
a figure is drawn, and the state of pyplot is never used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._escape import printable
from evenhand._format import count, in_full, points_in_full
from evenhand._kinds import POSSIBLE_LEAK
from evenhand._validate import Floats, bad_input
from evenhand.calibration import pit_histogram
from evenhand.links import FREE, Laplace, price_of_proof
from evenhand.report import OUTCOMES_TITLE, PIT_BAND, PIT_TITLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Records = Sequence[Mapping[str, Any]] | pd.DataFrame
    Legend = Literal["best", "above", "upper center", "upper right"]

# --- style of all figures: colours, axes, labels, and tables as lists of rows

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#757575"
"""Colours that people with any kind of colour vision can distinguish (Okabe and Ito); series also
differ in markers and dashes."""

LABEL_LENGTH = 40
"""Most characters of a label."""


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


def table_of(name: str, records: Records) -> pd.DataFrame:
    """Return records as a table; raise InputError if there are none."""
    table = pd.DataFrame(records)
    if table.empty:
        raise bad_input(name, "contain at least one row", "none")
    return table


def columns_of(table: pd.DataFrame, *names: str) -> Floats:
    """Return columns of numbers, one row each, NaN where they are missing."""
    return table.reindex(columns=list(names)).to_numpy(float).T


def flags(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Return what an audit decided on groups, one row each, False where it is missing."""
    names = ["too_small", "possible_leak", "off", "problem"]
    return table.reindex(columns=names).eq(True).to_numpy().T


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or the axes of a new figure, whose size is in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if ax is not None:
        return ax
    # a figure with its own canvas: pyplot would keep it alive and may open a window
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def whiskers(middle: Floats, low: Floats, high: Floats) -> Floats:
    """Return the lengths of both arms of error bars, shape (2, n); 0 where an end is unknown."""
    return np.nan_to_num(np.stack([middle - low, high - middle])).clip(0)


# --- titles of axes and labels of series that figures and reports have in common


ERROR_TITLE = "Calibration error (percentage points)"
PRICE_TITLE = "Price: loss in log score (nats)"

ORACLE = "oracle (chosen after seeing the outcomes)"
SAME_SEARCH = "the same search in calibrated forecasts"
CERTIFIED = "certified upper bound for every group of at least this size"
LEARNED = "learned from features, with lower bound"


# --- figures of an audit: worst groups, named groups, calibration, rates by a horizon

NOT_OFF, TOLERATED, PROBLEM, UNJUDGED = "not off", "tolerated", "problem", "unjudged"
GROUP_KINDS = {
    NOT_OFF: (BLUE, "o", "no problem found"),
    TOLERATED: (ORANGE, "D", "seen, within the tolerance"),
    PROBLEM: (RED, "s", "problem found"),
    UNJUDGED: (GREY, "s", "not judged"),
}
"""Colours, markers and labels of groups, by what an audit decided on them."""

ERRORS = ("error", "error_low", "error_high")


def plot_worst_group(
    records: Records, ax: Axes | None = None, *, learned: Records | None = None
) -> Axes:
    """Draw the error of the worst group by group size (method: worst groups).

    Parameters
    ----------
    records : DataFrame, or list of dict
        `worst_groups` of an audit: `mass`, `error` and optionally `null_mean`, `null_low`,
        `null_high` and `certified`, fractions.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    learned : DataFrame or list of dict, optional
        `learned` of an audit: `mass`, `error`, `low`.

    Returns
    -------
    matplotlib Axes
        A certified bound holds for every group of at least its size, so it is drawn as a step that
        reaches to the next size.

    Raises
    ------
    InputError
        If there is no record.

    Examples
    --------
    >>> ax = plot_worst_group([{"mass": 0.2, "error": 0.4}, {"mass": 1.0, "error": 0.0}])
    >>> [float(error) for error in ax.lines[0].get_ydata()]
    [0.4, 0.0]
    """
    columns = ("mass", "error", "null_low", "null_high", "null_mean", "certified")
    mass, error, low, high, mean, bound = columns_of(table_of("records", records), *columns)
    axes = axes_of(ax, (7.0, 4.2))
    axes.plot(mass, error, "o-", color=BLUE, label=ORACLE, zorder=3)
    # audits in parts and records of a user may have no null and no certificate
    if np.isfinite([low, high]).any():
        label = f"{SAME_SEARCH} (5% to 95%, mean dashed)"
        axes.fill_between(mass, low, high, color=GREY, alpha=0.25, linewidth=0, label=label)
    if np.isfinite(mean).any():
        axes.plot(mass, mean, "--", color=GREY, linewidth=1.2)
    if np.isfinite(bound).any():
        axes.step(mass, bound, where="post", color=RED, linewidth=2, label=CERTIFIED)
    # `len`, as the truth of a DataFrame is not defined
    if learned is not None and len(learned):
        mass, error, low = columns_of(table_of("learned", learned), "mass", "error", "low")
        style: Any = {"fmt": "D", "color": ORANGE, "markeredgecolor": "black", "capsize": 4}
        # an unbiased estimate may lie below its bound, and then has no bar
        axes.errorbar(mass, error, yerr=whiskers(error, low, error), label=LEARNED, **style)
    axes.set(xlabel="Group size (share of people)", xlim=(0, 1.02), ylabel=ERROR_TITLE)
    # an error is at most 1/2: above it there is room for the legend
    axes.set_ylim(min(axes.get_ylim()[0], 0.0), 0.66)
    axes.set_yticks(np.arange(0.0, 0.51, 0.1))
    axes.xaxis.set_major_formatter(as_percent)
    axes.yaxis.set_major_formatter(as_points)
    tidy(axes, "y", legend="upper right")
    return axes


def plot_groups(
    records: Records, ax: Axes | None = None, *, tolerance: float | None = None
) -> Axes:
    """Draw the error of each group with its confidence interval.

    Parameters
    ----------
    records : DataFrame, or list of dict
        `groups` or `scan` of an audit: `group`, `n`, `error`, `error_low`, `error_high` and
        optionally `off`, `problem`, `too_small`, `possible_leak`. The first is drawn on
        top. Where times are cut off, Kaplan-Meier estimates are drawn: `km_error`, `km_low`,
        `km_high`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure, as large as the groups need.
    tolerance : float, optional
        Error up to which findings are not important, such as `Audit.tolerance`: a shaded
        zone.

    Returns
    -------
    matplotlib Axes
        Groups with a problem are red squares, others that are significantly off orange diamonds,
        as the audit decided. Groups with too few rows, and
        groups that the outcome may define, are grey and labelled as such.

    Raises
    ------
    InputError
        If there is no record.

    Examples
    --------
    >>> women = {"group": "women", "n": 400, "error": 0.1, "error_low": 0.06, "error_high": 0.14}
    >>> ax = plot_groups([women])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['women (400 rows)']
    """
    table = table_of("records", records)
    axes, places = _rows_of_groups(ax, table)
    is_censored = "km_error" in table
    columns = ("km_error", "km_low", "km_high") if is_censored else ERRORS
    error, low, high = columns_of(table, *columns)
    few, leak, off, problem = flags(table)
    reach, small = whiskers(error, low, high), few | leak
    kinds = np.select([small, off & problem, off], [UNJUDGED, PROBLEM, TOLERATED], NOT_OFF)
    for kind, (color, marker, meaning) in GROUP_KINDS.items():
        part = kinds == kind
        if part.any():
            style: Any = {"fmt": marker, "color": color, "elinewidth": 2, "markersize": 6}
            # a table without decisions needs no legend
            style |= {"label": meaning} if "off" in table else {}
            axes.errorbar(error[part], places[part], xerr=reach[:, part], **style)
    if tolerance is not None:
        zone = f"tolerance: up to {points_in_full(tolerance)} points"
        axes.axvspan(0, tolerance, color=GREY, alpha=0.15, linewidth=0, label=zone)
    for label, is_small in zip(axes.get_yticklabels(), small, strict=True):
        label.set_color(GREY if is_small else "black")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(as_points)
    method = "Kaplan-Meier estimates, " if is_censored else ""
    axes.set_xlabel(f"{ERROR_TITLE}\n{method}with simultaneous 95% intervals")
    tidy(axes, "x", legend="above")
    return axes


def plot_calibration(
    pit: ArrayLike, ax: Axes | None = None, sample_weight: ArrayLike | None = None
) -> Axes:
    """Draw the histogram of PITs with a simultaneous band for calibrated forecasts.

    Parameters
    ----------
    pit : array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.

    Returns
    -------
    matplotlib Axes
        Heights are shares of the outcomes, which are equal under calibration (dashed line). The
        band is that of `calibration.pit_histogram`: it contains all bars with probability at least
        0.95. Bars outside are red and hatched.

    Raises
    ------
    InputError
        If a PIT is not between 0 and 1, or the weights do not fit.

    Examples
    --------
    >>> ax = plot_calibration((np.arange(200) + 0.5) / 200)
    >>> [float(round(bar.get_height(), 9)) for bar in ax.patches[:10]] == [0.1] * 10
    True
    """
    found = pit_histogram(pit, sample_weight)
    even = 1 / len(found)
    axes = axes_of(ax, (7.0, 3.6))
    style: Any = {"align": "edge", "color": BLUE, "alpha": 0.75, "edgecolor": "w"}
    bars = axes.bar(found["start"], found["share"], width=even, **style)
    is_outside = (found["share"] < found["low"]) | (found["share"] > found["high"])
    for bar, marked in zip(bars, is_outside, strict=True):
        # hatched as well, for readers who do not see red
        if marked:
            bar.set(facecolor=RED, hatch="//")
    style = {"fill": True, "color": GREY, "alpha": 0.35, "linewidth": 0, "label": PIT_BAND}
    axes.stairs(found["high"], [0.0, *found["end"]], baseline=found["low"], **style)
    axes.axhline(even, color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
    # the legend needs 30% of room above the highest bar
    top = 1.3 * found[["share", "high"]].to_numpy().max()
    axes.set(xlim=(0, 1), xlabel=PIT_TITLE, ylim=(0, top), ylabel=OUTCOMES_TITLE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(as_percent)
    tidy(axes, "y", legend="upper center")
    return axes


def _rows_of_groups(ax: Axes | None, table: pd.DataFrame) -> tuple[Axes, Floats]:
    """Return axes with a labelled row for each group, the first on top, and their places."""
    labels, (few, leak, *_) = [], flags(table)
    for name, n, is_few, is_leak in zip(table["group"], table["n"], few, leak, strict=True):
        n_rows = f"too few rows: {n:,}" if is_few else count(n, "row")
        labels.append(f"{plain_label(name)} ({n_rows}{f', {POSSIBLE_LEAK}' if is_leak else ''})")
    # long names must leave room for the axis
    size = (max(7.0, 4.5 + 0.08 * max(map(len, labels))), 1.8 + 0.32 * len(labels))
    axes, places = axes_of(ax, size), np.arange(len(labels), dtype=float)
    axes.set_yticks(places, labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    return axes, places


# --- figure of predicted and observed rates of an event by a horizon


def plot_survival(records: Records, ax: Axes | None = None) -> Axes:
    """Draw predicted and observed rates of an event by a horizon in each group.

    Parameters
    ----------
    records : DataFrame, or list of dict
        `survival` of an audit of times that may be cut off: `group`, `n`, `predicted`, `observed`,
        `low`, `high` and optionally `least`, `most`. The first is drawn on top.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure, as large as the groups need.

    Returns
    -------
    matplotlib Axes
        Observed rates are Kaplan-Meier estimates with intervals. The grey range from `least` to
        `most` contains the rate whatever happened to the people who were cut off.

    Raises
    ------
    InputError
        If there is no record.

    Examples
    --------
    >>> women = {"group": "women", "n": 400, "predicted": 0.4, "observed": 0.3}
    >>> ax = plot_survival([women | {"low": 0.25, "high": 0.36, "least": 0.2, "most": 0.5}])
    >>> ax.get_legend_handles_labels()[1]
    ['predicted', 'without assumption', 'observed']
    """
    table = table_of("records", records)
    axes, places = _rows_of_groups(ax, table)
    columns = ("predicted", "observed", "low", "high", "least", "most")
    predicted, observed, low, high, least, most = columns_of(table, *columns)
    if np.isfinite(most - least).any():
        style: Any = {"color": GREY, "alpha": 0.25, "linewidth": 0, "height": 0.4}
        axes.barh(places, most - least, left=least, label="without assumption", **style)
    style = {"fmt": "o", "color": BLUE, "elinewidth": 2, "markersize": 6}
    axes.errorbar(observed, places, xerr=whiskers(observed, low, high), label="observed", **style)
    style = {"color": ORANGE, "markeredgecolor": "black", "markersize": 6, "zorder": 3}
    axes.plot(predicted, places, "D", label="predicted", **style)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(as_percent)
    axes.set_xlabel("Rate of the event by the horizon\nKaplan-Meier estimates, with 95% intervals")
    tidy(axes, "x", legend="above")
    return axes


# --- figure of the price of proof, with forecasters for comparison (method: links)

MARKED_ALPHAS = {0.05: "0.05", 0.1: "0.1", 0.2: "0.2", 1 / 3: "1/3", 0.5: "0.5", 1.0: "1"}
"""Alphas that are marked on the limit, as they are written."""

TOP_ERROR = 0.02
"""The axis of prices ends at the limit for this error, as the limit itself has no upper end."""


def plot_price_of_proof(ax: Axes | None = None, *, points: Records | None = None) -> Axes:
    """Draw the lowest price of proof, with forecasters for comparison (method: links).

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    points : DataFrame or list of dict, optional
        Forecasters: `error`, the mean pathwise error, a fraction; `price`, the NLL above the
        conditional entropy, in nats; optionally `name`, and `price_low` and `price_high`, the ends
        of an interval. An excess over a fitted base is no such price, and a finite test set can dip
        below the limit.

    Returns
    -------
    matplotlib Axes
        The limit of all forecasters, with the alphas of `Laplace` that attain it; the limit of
        those that are calibrated on average; and in a small panel the difference of the two limits,
        which is too small to see.

    Raises
    ------
    InputError
        If `points` has no record.

    Examples
    --------
    >>> ax = plot_price_of_proof(points=[{"name": "mine", "error": 0.2, "price": 0.3}])
    >>> [text.get_text() for text in ax.texts][-1]
    'mine'
    """
    table = pd.DataFrame() if points is None else table_of("points", points)
    axes = axes_of(ax, (7.0, 4.6))
    error, price, *ends = columns_of(table, "error", "price", "price_low", "price_high")
    errors = np.geomspace(0.002, FREE, 400)
    limits = price_of_proof(errors, exact=False), price_of_proof(errors)
    _draw_limits(axes, errors, *limits)
    if len(table):
        style: Any = {
            "yerr": whiskers(price, *ends),
            "fmt": "D",
            "color": RED,
            "markeredgecolor": "black",
            "capsize": 4,
        }
        axes.errorbar(error, price, label="forecasters", zorder=4, **style)
    axes.set_xlim(0, max(0.36, 1.04 * np.nanmax(error, initial=0.0)))
    low = np.nanmin(price, initial=0.0)
    top = np.interp(TOP_ERROR, errors, limits[1])
    high = np.nanmax(price, initial=top)
    # the legend spans errors above 0.11 at the top: forecasters there get 30% of room above them
    beside = price[(error > 0.11) & np.isfinite(price)]
    highest = max(1.05 * high, 1.3 * float(beside.max(initial=0.0)))
    axes.set_ylim(low - 0.05 * (high - low), highest)
    axes.set_xlabel("Mean pathwise error (percentage points)")
    axes.set_ylabel(PRICE_TITLE)
    axes.xaxis.set_major_formatter(as_points)
    tidy(axes, "y", legend="upper right")
    for name, x, y in zip(table.get("name", ()), error, price, strict=False):
        if pd.notna(name) and np.isfinite(x + y):
            style = {"textcoords": "offset points", "fontsize": "small", "zorder": 5}
            axes.annotate(plain_label(name), (x, y), (7, 4), **style)
    return axes


def _draw_limits(axes: Axes, errors: Floats, price: Floats, calibrated: Floats) -> None:
    # the limit goes to infinity at an error of 0, where the shaded region is extended level
    edge = np.append(0.0, errors), np.append(price[0], price)
    axes.fill_between(*edge, color=GREY, alpha=0.15, linewidth=0)
    label = "limit of all forecasters, attained by laplace"
    axes.plot(errors, price, color=BLUE, linewidth=2, label=label)
    label = "limit if calibrated on average, attained by entropic"
    axes.plot(errors, calibrated, "--", color=ORANGE, label=label)
    for alpha, shown in MARKED_ALPHAS.items():
        link = Laplace(alpha)
        place = (link.mean_error, link.price)
        axes.plot(*place, "o", color=BLUE, markersize=5, zorder=3)
        # below the limit there is no forecaster, and so no other name
        style: Any = {"ha": "right", "va": "top", "fontsize": "small"}
        axes.annotate(f"α = {shown}", place, (-4, -4), textcoords="offset points", **style)
    axes.text(0.055, 0.35, "no forecaster", color="#505050", style="italic", ha="center")
    # the difference of the limits in a panel, behind the forecasters in case one lies there
    panel = axes.inset_axes((0.58, 0.42, 0.38, 0.26), zorder=1)
    panel.plot(errors, 1000 * (calibrated - price), "--", color=ORANGE)
    panel.set(xlim=(0, 0.36), ylim=(0, 7))
    panel.set_title("Dashed − solid (0.001 nats)", fontsize="small")
    panel.tick_params(labelsize="small")
    panel.xaxis.set_major_formatter(as_points)
    tidy(panel, "y")


# --- the figures

# parts of figures and pages in other rooms; `__all__` is the documented reference

__all__ = [
    "plot_calibration",
    "plot_groups",
    "plot_price_of_proof",
    "plot_survival",
    "plot_worst_group",
]
