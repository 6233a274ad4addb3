"""Figures of an audit: worst groups, named groups, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import count, points_in_full, whole
from evenhand.calibration import pit_histogram
from evenhand.figures.style import (
    BLUE,
    CERTIFIED,
    ERROR_TITLE,
    GREY,
    LEARNED,
    ORACLE,
    ORANGE,
    OUTCOMES_TITLE,
    PIT_BAND,
    PIT_TITLE,
    RED,
    SAME_SEARCH,
    SIZE_TITLE,
    as_percent,
    as_points,
    as_rows,
    axes_of,
    column,
    plain_label,
    tidy,
    whiskers,
)
from evenhand.search import POSSIBLE_LEAK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenhand.figures.style import Records


NOT_OFF, TOLERATED, PROBLEM, UNJUDGED = "not off", "tolerated", "problem", "unjudged"
GROUP_KINDS = {
    NOT_OFF: (BLUE, "o", "no problem found"),
    TOLERATED: (ORANGE, "D", "seen, within the tolerance"),
    PROBLEM: (RED, "s", "problem found"),
    UNJUDGED: (GREY, "s", "not judged"),
}
"""Colours, markers and labels of groups, by what an audit decided on them."""


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
    rows = as_rows("records", records)
    axes = axes_of(ax, (7.0, 4.2))
    mass = column(rows, "mass")
    error = column(rows, "error")
    low, high, bound = (column(rows, key) for key in ("null_low", "null_high", "certified"))
    axes.plot(mass, error, "o-", color=BLUE, label=ORACLE, zorder=3)
    # audits in parts and records of a user may have no null and no certificate
    if np.isfinite([low, high]).any():
        label = f"{SAME_SEARCH} (5% to 95%, mean dashed)"
        axes.fill_between(mass, low, high, color=GREY, alpha=0.25, linewidth=0, label=label)
    if np.isfinite(column(rows, "null_mean")).any():
        axes.plot(mass, column(rows, "null_mean"), "--", color=GREY, linewidth=1.2)
    if np.isfinite(bound).any():
        axes.step(mass, bound, where="post", color=RED, linewidth=2, label=CERTIFIED)
    # `len`, as the truth of a DataFrame is not defined
    if learned is not None and len(learned):
        _draw_learned(axes, as_rows("learned", learned))
    axes.set(xlabel=SIZE_TITLE, xlim=(0, 1.02), ylabel=ERROR_TITLE)
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
    rows = as_rows("records", records)
    labels = [_group_label(row) for row in rows]
    # long names must leave room for the axis
    axes = axes_of(ax, (max(7.0, 4.5 + 0.08 * max(map(len, labels))), 1.8 + 0.32 * len(rows)))
    is_censored = "km_error" in rows[0]
    key, ends = ("km_error", "km") if is_censored else ("error", "error")
    error = column(rows, key)
    places = np.arange(len(rows), dtype=np.float64)
    reach = whiskers(error, column(rows, f"{ends}_low"), column(rows, f"{ends}_high"))
    kinds = np.array([_group_kind(row) for row in rows])
    small = kinds == UNJUDGED
    for kind, (color, marker, meaning) in GROUP_KINDS.items():
        part = kinds == kind
        if part.any():
            style: Any = {"fmt": marker, "color": color, "elinewidth": 2, "markersize": 6}
            # a table without decisions needs no legend
            style |= {"label": meaning} if "off" in rows[0] else {}
            axes.errorbar(error[part], places[part], xerr=reach[:, part], **style)
    if tolerance is not None:
        zone = f"tolerance: up to {points_in_full(tolerance)} points"
        axes.axvspan(0, tolerance, color=GREY, alpha=0.15, linewidth=0, label=zone)
    axes.set_yticks(places, labels)
    for label, is_small in zip(axes.get_yticklabels(), small, strict=True):
        label.set_color(GREY if is_small else "black")
    # the y axis falls, so that the first group is on top
    axes.set_ylim(len(rows) - 0.4, -0.6)
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
    even = 1 / found.share.size
    axes = axes_of(ax, (7.0, 3.6))
    style: Any = {"align": "edge", "color": BLUE, "alpha": 0.75, "edgecolor": "w"}
    bars = axes.bar(found.edges[:-1], found.share, width=even, **style)
    is_outside = (found.share < found.low) | (found.share > found.high)
    for bar, marked in zip(bars, is_outside, strict=True):
        # hatched as well, for readers who do not see red
        if marked:
            bar.set(facecolor=RED, hatch="//")
    style = {"fill": True, "color": GREY, "alpha": 0.35, "linewidth": 0, "label": PIT_BAND}
    axes.stairs(found.high, found.edges, baseline=found.low, **style)
    axes.axhline(even, color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
    # the legend needs 30% of room above the highest bar
    top = 1.3 * max(found.share.max(), found.high.max())
    axes.set(xlim=(0, 1), xlabel=PIT_TITLE, ylim=(0, top), ylabel=OUTCOMES_TITLE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(as_percent)
    tidy(axes, "y", legend="upper center")
    return axes


def _draw_learned(axes: Axes, rows: list[Mapping[str, Any]]) -> None:
    mass, error, low = (column(rows, key) for key in ("mass", "error", "low"))
    style: Any = {"fmt": "D", "color": ORANGE, "markeredgecolor": "black", "capsize": 4}
    # an unbiased estimate may lie below its bound, and then has no bar
    axes.errorbar(mass, error, yerr=whiskers(error, low, error), label=LEARNED, **style)


def _group_kind(row: Mapping[str, Any]) -> str:
    if row.get("too_small") or row.get("possible_leak"):
        return UNJUDGED
    if row.get("off"):
        return PROBLEM if row.get("problem") else TOLERATED
    return NOT_OFF


def _group_label(row: Mapping[str, Any]) -> str:
    n = row.get("n")
    size = "unknown number of rows" if n is None else count(n, "row")
    facts = [f"too few rows: {whole(n)}" if row.get("too_small") else size]
    facts += [POSSIBLE_LEAK] if row.get("possible_leak") else []
    return f"{plain_label(row.get('group'))} ({', '.join(facts)})"


# --- figure of predicted and observed rates of an event by a horizon

ROW = 0.32
"""Height of a group in inches."""


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
    rows = as_rows("records", records)
    labels = [f"{plain_label(row.get('group'))} ({count(row['n'], 'row')})" for row in rows]
    axes = axes_of(ax, (max(7.0, 4.5 + 0.08 * max(map(len, labels))), 1.8 + ROW * len(rows)))
    places = np.arange(len(rows), dtype=np.float64)
    predicted, observed, low, high, least, most = (
        column(rows, key) for key in ("predicted", "observed", "low", "high", "least", "most")
    )
    if np.isfinite(most - least).any():
        style: Any = {"color": GREY, "alpha": 0.25, "linewidth": 0, "height": 0.4}
        axes.barh(places, most - least, left=least, label="without assumption", **style)
    style = {"fmt": "o", "color": BLUE, "elinewidth": 2, "markersize": 6}
    axes.errorbar(observed, places, xerr=whiskers(observed, low, high), label="observed", **style)
    style = {"color": ORANGE, "markeredgecolor": "black", "markersize": 6, "zorder": 3}
    axes.plot(predicted, places, "D", label="predicted", **style)
    axes.set_yticks(places, labels)
    # the y axis falls, so that the first group is on top
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(as_percent)
    axes.set_xlabel("Rate of the event by the horizon\nKaplan-Meier estimates, with 95% intervals")
    tidy(axes, "x", legend="above")
    return axes
