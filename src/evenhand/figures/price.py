"""Figure of the price of proof, with forecasters beside it (method: links)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._validate import Floats
from evenhand.figures.names import place_names
from evenhand.figures.style import (
    BLUE,
    GREY,
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
from evenhand.links import Laplace, price_of_proof

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenhand.figures.style import Records

MARKED_ALPHAS = {0.05: "0.05", 0.1: "0.1", 0.2: "0.2", 1 / 3: "1/3", 0.5: "0.5", 1.0: "1"}


def plot_price_of_proof(ax: Axes | None = None, *, points: Records | None = None) -> Axes:
    """Draw the least price of proof of calibration, with forecasters beside it (method: links).

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own if None.
    points : DataFrame or list of dict, optional
        Forecasters: `error`, the mean pathwise error, a fraction; `price`, the NLL above the
        conditional entropy, in nats; where known `name`, and `price_low` and `price_high`, the ends
        of an interval. An excess over a fitted base is no such price, and a finite test set can dip
        below the limit.

    Returns
    -------
    matplotlib Axes
        The limit for all forecasters, with the alphas of `Laplace` that attain it; the limit for
        those that are calibrated on average; and in a small panel the difference of the two, which
        is too small to see.

    Raises
    ------
    InputError
        If `points` holds no record.

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
    curve = np.geomspace(0.002, 1 / 3, 400)
    every = price_of_proof(curve, exact=False)
    exact = price_of_proof(curve)
    # the limit goes to infinity at an error of 0, where the shaded region is extended level
    axes.fill_between(
        np.append(0.0, curve), np.append(every[0], every), color=GREY, alpha=0.15, linewidth=0
    )
    label = "Limit of all forecasters, attained by laplace"
    axes.plot(curve, every, color=BLUE, linewidth=2, label=label)
    label = "Limit of those calibrated on average, attained by entropic"
    axes.plot(curve, exact, "--", color=ORANGE, label=label)
    _mark_alphas(axes)
    _draw_gap(axes, curve, exact - every)
    if rows:
        _draw_forecasters(axes, rows, error, price)
    # the limit has no upper end: it leaves at the top, at the price of an error of 0.02
    axes.set_xlim(0, max(0.36, 1.04 * float(np.nanmax(error, initial=0.0))))
    low = np.nanmin(price, initial=0.0)
    high = np.nanmax(price, initial=float(price_of_proof(0.02)))
    # the legend spans errors above 0.11 at the top: forecasters there get 30% of room above them
    beside = price[(error > 0.11) & np.isfinite(price)]
    top = max(1.05 * high, 1.3 * float(beside.max(initial=0.0)))
    axes.set_ylim(low - 0.05 * (high - low), top)
    axes.set(
        xlabel="Mean pathwise error (percentage points)", ylabel="Price: log score given up (nats)"
    )
    axes.xaxis.set_major_formatter(as_points)
    axes.legend(loc="upper right", edgecolor="none", framealpha=1, fontsize="small")
    tidy(axes, "y")
    _name_forecasters(axes, rows, error, price, np.stack([curve, every], axis=-1))
    return axes


def _mark_alphas(axes: Axes) -> None:
    for alpha, name in MARKED_ALPHAS.items():
        link = Laplace(alpha)
        place = (link.mean_error, link.price)
        axes.plot(*place, "o", color=BLUE, markersize=5, zorder=3)
        # below the limit there is no forecaster, and so no other name
        style: Any = {"ha": "right", "va": "top", "fontsize": "small"}
        axes.annotate(f"α = {name}", place, (-4, -4), textcoords="offset points", **style)
    axes.text(0.055, 0.35, "no forecaster", color="#505050", style="italic", ha="center")


def _draw_gap(axes: Axes, error: Floats, gap: Floats) -> None:
    """Draw the difference of the two limits in a panel of its own, in thousandths of a nat."""
    # behind the forecasters, in case one lies there
    panel = axes.inset_axes((0.58, 0.42, 0.38, 0.26), zorder=1)
    panel.plot(error, 1000 * gap, "--", color=ORANGE)
    panel.set(xlim=(0, 0.36), ylim=(0, 7))
    panel.set_title("Dashed − solid (0.001 nats)", fontsize="small")
    panel.tick_params(labelsize="small")
    panel.xaxis.set_major_formatter(as_points)
    tidy(panel, "y")


def _draw_forecasters(
    axes: Axes, rows: list[Mapping[str, Any]], error: Floats, price: Floats
) -> None:
    reach = whiskers(price, column(rows, "price_low"), column(rows, "price_high"))
    style: Any = {"fmt": "D", "color": RED, "markeredgecolor": "black", "capsize": 4, "zorder": 4}
    axes.errorbar(error, price, yerr=reach, label="Forecasters", **style)


def _name_forecasters(
    axes: Axes, rows: list[Mapping[str, Any]], error: Floats, price: Floats, limit: Floats
) -> None:
    points = list(zip(error.tolist(), price.tolist(), strict=True))
    known = [i for i, point in enumerate(points) if np.isfinite(point).all()]
    named = [i for i in known if rows[i].get("name") is not None]
    names = [plain_label(rows[i]["name"]) for i in named]
    marks = [(Laplace(alpha).mean_error, Laplace(alpha).price) for alpha in MARKED_ALPHAS]
    others = [points[i] for i in known if i not in named] + marks
    ends = [column(rows, key) for key in ("price_low", "price_high")]
    intervals = [
        np.stack([np.full(25, error[i]), np.linspace(ends[0][i], ends[1][i], 25)], axis=-1)
        for i in known
    ]
    place_names(axes, [points[i] for i in named], names, markers=others, lines=[limit, *intervals])
