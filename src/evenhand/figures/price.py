"""Figure of the price of proof, with forecasters for comparison (method: links)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    PRICE_TITLE,
    RED,
    as_points,
    as_rows,
    axes_of,
    column,
    plain_label,
    tidy,
    whiskers,
)
from evenhand.links import PriceLimits, price_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenhand.figures.style import Records

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
    rows = [] if points is None else as_rows("points", points)
    axes = axes_of(ax, (7.0, 4.6))
    error = column(rows, "error")
    price = column(rows, "price")
    ends = np.stack([column(rows, "price_low"), column(rows, "price_high")])
    limits = price_limits(MARKED_ALPHAS)
    _draw_limits(axes, limits)
    if rows:
        style: Any = {
            "yerr": whiskers(price, *ends),
            "fmt": "D",
            "color": RED,
            "markeredgecolor": "black",
            "capsize": 4,
        }
        axes.errorbar(error, price, label="forecasters", zorder=4, **style)
    axes.set_xlim(0, max(0.36, 1.04 * float(np.nanmax(error, initial=0.0))))
    low = np.nanmin(price, initial=0.0)
    top = float(np.interp(TOP_ERROR, limits.error, limits.calibrated_price))
    high = np.nanmax(price, initial=top)
    # the legend spans errors above 0.11 at the top: forecasters there get 30% of room above them
    beside = price[(error > 0.11) & np.isfinite(price)]
    highest = max(1.05 * high, 1.3 * float(beside.max(initial=0.0)))
    axes.set_ylim(low - 0.05 * (high - low), highest)
    axes.set_xlabel("Mean pathwise error (percentage points)")
    axes.set_ylabel(PRICE_TITLE)
    axes.xaxis.set_major_formatter(as_points)
    tidy(axes, "y", legend="upper right")
    for row, place in zip(rows, zip(error, price, strict=True), strict=True):
        if row.get("name") is not None and np.isfinite(place).all():
            style = {"textcoords": "offset points", "fontsize": "small", "zorder": 5}
            axes.annotate(plain_label(row["name"]), place, (7, 4), **style)
    return axes


def _draw_limits(axes: Axes, limits: PriceLimits) -> None:
    # the limit goes to infinity at an error of 0, where the shaded region is extended level
    edge = np.append(0.0, limits.error), np.append(limits.price[0], limits.price)
    axes.fill_between(*edge, color=GREY, alpha=0.15, linewidth=0)
    label = "limit of all forecasters, attained by laplace"
    axes.plot(limits.error, limits.price, color=BLUE, linewidth=2, label=label)
    label = "limit if calibrated on average, attained by entropic"
    axes.plot(limits.error, limits.calibrated_price, "--", color=ORANGE, label=label)
    for link in limits.links:
        place = (link.mean_error, link.price)
        axes.plot(*place, "o", color=BLUE, markersize=5, zorder=3)
        # below the limit there is no forecaster, and so no other name
        style: Any = {"ha": "right", "va": "top", "fontsize": "small"}
        name = f"α = {MARKED_ALPHAS[link.alpha]}"
        axes.annotate(name, place, (-4, -4), textcoords="offset points", **style)
    axes.text(0.055, 0.35, "no forecaster", color="#505050", style="italic", ha="center")
    # the difference of the limits in a panel, behind the forecasters in case one lies there
    panel = axes.inset_axes((0.58, 0.42, 0.38, 0.26), zorder=1)
    gap = limits.calibrated_price - limits.price
    panel.plot(limits.error, 1000 * gap, "--", color=ORANGE)
    panel.set(xlim=(0, 0.36), ylim=(0, 7))
    panel.set_title("Dashed − solid (0.001 nats)", fontsize="small")
    panel.tick_params(labelsize="small")
    panel.xaxis.set_major_formatter(as_points)
    tidy(panel, "y")
