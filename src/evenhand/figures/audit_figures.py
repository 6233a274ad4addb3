"""Figures of an audit: worst groups, named groups, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import confidence_in_full
from evenhand._validate import check_weights
from evenhand.calibration import HISTOGRAM_CONFIDENCE, as_pits, histogram_bins, pit_histogram
from evenhand.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    as_points,
    as_rows,
    axes_of,
    column,
    finish,
    plain_label,
    tidy,
    whiskers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenhand.figures.style import Records


def plot_worst_group(
    records: Records, ax: Axes | None = None, *, learned: Records | None = None
) -> Axes:
    """Draw the error of the worst group against its share of the people (method: worst groups).

    Parameters
    ----------
    records : DataFrame, or list of dict
        `worst_groups` of an audit: `mass`, `error` and, where known, `null_mean`, `null_low`,
        `null_high` and `certified`, fractions.
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own if None.
    learned : DataFrame or list of dict, optional
        `learned` of an audit: `mass`, `error`, `low`.

    Returns
    -------
    matplotlib Axes
        A certified bound holds for every group of at least its mass, so it is drawn as a step up to
        the next mass.

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
    axes.plot(mass, error, "o-", color=BLUE, label="Oracle: picked with outcomes seen", zorder=3)
    # audits in parts and records of a user may have no null and no certificate
    if np.isfinite([low, high]).any():
        label = "Same search, calibrated forecasts (5% to 95%, mean)"
        axes.fill_between(mass, low, high, color=GREY, alpha=0.25, linewidth=0, label=label)
    if np.isfinite(column(rows, "null_mean")).any():
        axes.plot(mass, column(rows, "null_mean"), "--", color=GREY, linewidth=1.2)
    if np.isfinite(bound).any():
        label = "Certified for every group of at least this share"
        axes.step(mass, bound, where="post", color=RED, linewidth=2, label=label)
    # `len`, as the truth of a DataFrame is not defined
    if learned is not None and len(learned):
        _draw_learned(axes, as_rows("learned", learned))
    finish(axes, x="Share of people in the group", y="Off by (percentage points)")
    return axes


def plot_groups(records: Records, ax: Axes | None = None) -> Axes:
    """Draw the error of each named group with its 95% band.

    Parameters
    ----------
    records : DataFrame, or list of dict
        `groups` of an audit: `group`, `n`, `error`, `error_low`, `error_high`, `too_small`. The
        first is drawn on top.
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own, as large as the groups need, if None.

    Returns
    -------
    matplotlib Axes
        Groups that are too small to tell, or that the outcome may define, are grey and labelled so.

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
    # room for the axis beside long names
    axes = axes_of(ax, (max(7.0, 4.5 + 0.08 * max(map(len, labels))), 1.1 + 0.32 * len(rows)))
    error = column(rows, "error")
    places = np.arange(len(rows), dtype=np.float64)
    reach = whiskers(error, column(rows, "error_low"), column(rows, "error_high"))
    small = np.array([bool(row.get("too_small") or row.get("possible_leak")) for row in rows])
    for part, color, marker in ((~small, BLUE, "o"), (small, GREY, "s")):
        if part.any():
            style: Any = {"fmt": marker, "color": color, "elinewidth": 2, "markersize": 6}
            axes.errorbar(error[part], places[part], xerr=reach[:, part], **style)
    axes.set_yticks(places, labels)
    for label, is_small in zip(axes.get_yticklabels(), small, strict=True):
        label.set_color(GREY if is_small else "black")
    # the y axis falls, so that the first group is on top
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(as_points)
    axes.set_xlabel("Off by (percentage points), with 95% band")
    tidy(axes, "x")
    return axes


def plot_calibration(
    pit: ArrayLike, ax: Axes | None = None, sample_weight: ArrayLike | None = None
) -> Axes:
    """Draw the histogram of PITs with the band in which calibrated forecasts keep it.

    Parameters
    ----------
    pit : array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws.
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own if None.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.

    Returns
    -------
    matplotlib Axes
        Heights are densities, 1 where calibrated. The band holds all bars at once with probability
        at least 0.95 (Bonferroni): exactly for one draw per person, approximately for several draws
        or for weights. Bars outside are red and hatched.

    Raises
    ------
    InputError
        If a PIT lies outside 0 and 1, or weights do not fit.

    Examples
    --------
    >>> ax = plot_calibration((np.arange(200) + 0.5) / 200)
    >>> [float(round(bar.get_height(), 9)) for bar in ax.patches[:10]] == [1.0] * 10
    True
    """
    matrix = as_pits(pit).matrix
    weights = check_weights(sample_weight, matrix.shape[0])
    share, low, high = pit_histogram(
        matrix, weights / weights.sum(), histogram_bins(matrix.shape[0])
    )
    n_bins = share.size
    axes = axes_of(ax, (7.0, 3.6))
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    style: Any = {"align": "edge", "color": BLUE, "alpha": 0.75, "edgecolor": "w"}
    bars = axes.bar(edges[:-1], share * n_bins, width=1 / n_bins, **style)
    for bar, is_outside in zip(bars, (share < low) | (share > high), strict=True):
        # hatched as well, for readers who do not see red
        if is_outside:
            bar.set(facecolor=RED, hatch="//")
    label = f"{confidence_in_full(HISTOGRAM_CONFIDENCE)} band under calibration, all bars at once"
    style = {"fill": True, "color": GREY, "alpha": 0.35, "linewidth": 0}
    axes.stairs(high * n_bins, edges, baseline=low * n_bins, label=label, **style)
    axes.axhline(1, color=GREY, linestyle="--", linewidth=1.2)
    axes.set(xlim=(0, 1), xlabel="PIT: stated chance of an outcome this low", ylabel="Density")
    # the legend needs 30% of room above the highest bar
    axes.set_ylim(0, 1.3 * float(max(share.max(), high.max())) * n_bins)
    axes.legend(loc="upper center", frameon=False)
    tidy(axes, "y")
    return axes


def _draw_learned(axes: Axes, rows: list[Mapping[str, Any]]) -> None:
    mass, error, low = (column(rows, key) for key in ("mass", "error", "low"))
    label = "Learned from features, bar down to its lower bound"
    style: Any = {"fmt": "D", "color": ORANGE, "markeredgecolor": "black", "capsize": 4}
    # an unbiased estimate may lie below its bound, and then has no bar
    axes.errorbar(mass, error, yerr=whiskers(error, low, error), label=label, **style)


def _group_label(row: Mapping[str, Any]) -> str:
    n = row.get("n")
    size = "unknown" if n is None else f"{n:,}"
    noun = "row" if n == 1 else "rows"
    label = f"too few rows: {size}" if row.get("too_small") else f"{size} {noun}"
    leak = ", possible leak" if row.get("possible_leak") else ""
    return f"{plain_label(row.get('group'))} ({label}{leak})"
