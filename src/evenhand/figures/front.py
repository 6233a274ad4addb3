"""Figure of sharpness against the error of the worst group, for several forecasters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, bad_input
from evenhand.figures.names import place_names
from evenhand.figures.style import (
    BLUE,
    ORANGE,
    RED,
    as_points,
    as_rows,
    axes_of,
    column,
    plain_label,
    tidy,
    whiskers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenhand.figures.style import Records

STYLES = (
    (BLUE, "o", "-"),
    (ORANGE, "s", "--"),
    (RED, "D", "-."),
    ("#009e73", "^", ":"),
    ("#cc79a7", "v", "-"),
)
"""Colour, marker and line of each series in turn."""


def plot_front(records: Records, ax: Axes | None = None) -> Axes:
    """Draw sharpness against the error of the worst group, by forecaster and alpha (method: front).

    Parameters
    ----------
    records : DataFrame, or list of dict
        One row per point: `error`, the error of the worst group, a fraction; `score`, where smaller
        is sharper, such as the log score in nats; optionally `label`, the name of its series,
        `alpha`, which orders the series, and `low` and `high`, the ends of an interval of the
        score.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        Points of one label are joined in the order of alpha. The smallest and the largest alpha and
        alpha = 0.1 are written beside their points; with more than two series, on the first only. A
        point with an unknown error or score is left out. Forecasters to the lower left are better
        in both respects.

    Raises
    ------
    InputError
        If there is no record, or none with an error and a score.

    Examples
    --------
    >>> base = {"error": 0.3, "score": 1.2, "alpha": 1.0}
    >>> ax = plot_front([base, {"error": 0.1, "score": 2.0, "alpha": 0.1}])
    >>> [text.get_text() for text in ax.texts]
    ['α = 0.1', 'α = 1']
    """
    rows = as_rows("records", records)
    error, score, alpha = (column(rows, key) for key in ("error", "score", "alpha"))
    known = np.isfinite(error) & np.isfinite(score)
    if not known.any():
        raise bad_input("records", "contain a row with an error and a score", "none")
    axes = axes_of(ax, (7.0, 4.6))
    ends = np.stack([column(rows, "low"), column(rows, "high")])
    lines: list[Floats] = []
    named: list[list[int]] = []
    for i, (label, members) in enumerate(_series(rows, known).items()):
        # by alpha where it is known, then by error
        order = members[np.lexsort((error[members], alpha[members]))]
        _draw_series(axes, error[order], score[order], ends[:, order], label, i)
        lines.append(np.stack([error[order], score[order]], axis=-1))
        named += [found] if (found := _named(order, alpha)) else []
    axes.set_xlabel("Calibration error of the worst group (percentage points)")
    axes.set_ylabel("Score (smaller is sharper)")
    axes.xaxis.set_major_formatter(as_points)
    axes.margins(0.08)
    tidy(axes, "y", legend="best")
    # names on more than two series would hide the points
    shown = [i for members in (named if len(named) <= 2 else named[:1]) for i in members]
    names = {i: f"α = {alpha[i]:.3g}" for i in shown}
    place_names(axes, np.stack([error, score], axis=-1), names, ends, lines=lines)
    return axes


def _series(
    rows: list[Mapping[str, Any]], known: NDArray[np.bool_]
) -> dict[str | None, NDArray[np.intp]]:
    """Return the rows of each label, in order of appearance."""
    members: dict[str | None, list[int]] = {}
    for i in np.flatnonzero(known):
        label = rows[i].get("label")
        # a table has NaN where there is no label
        is_none = label is None or (isinstance(label, float) and np.isnan(label))
        members.setdefault(None if is_none else plain_label(label), []).append(int(i))
    return {label: np.array(found, dtype=np.intp) for label, found in members.items()}


def _draw_series(
    axes: Axes, error: Floats, score: Floats, ends: Floats, label: str | None, number: int
) -> None:
    color, marker, line = STYLES[number % len(STYLES)]
    reach = whiskers(score, *ends)
    style: Any = {"yerr": reach, "elinewidth": 1.2, "capsize": 3} if reach.any() else {}
    if number >= len(STYLES):
        # beyond the last colour markers are hollow
        style["markerfacecolor"] = "white"
    style["linestyle"] = line if error.size > 1 else "none"
    axes.errorbar(error, score, color=color, marker=marker, markersize=5.5, label=label, **style)


def _named(order: NDArray[np.intp], alpha: Floats) -> list[int]:
    """Return the rows of a series whose alpha is written: both ends and the default, 0.1."""
    known = [int(i) for i in order if np.isfinite(alpha[i])]
    return [i for i in known if i in (known[0], known[-1]) or np.isclose(alpha[i], 0.1)]
