"""Figure of predicted and observed rates of an event by a horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._format import count
from evenhand.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    as_percent,
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
