"""Figures of the toy study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._validate import Floats
from evenhand.figures import BLUE, GREY, ORANGE, RED, new_figure, tidy
from reproduction.panels import share_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEATURE = "Feature x (no unit)"
OUTCOME = "Outcome y (no unit)"


def plot_introduction(values: Mapping[str, Any]) -> Axes:
    """Draw 80% intervals and missed people of a deterministic and of a randomized forecaster.

    Parameters
    ----------
    values : dict
        `x` and `y` of the people, (n,); `served`, three dicts with `title`, `low`, `high` and
        `median`, (n,); `grid`, (k,); `misses`, the shares of outcomes missed on it by name;
        `promised`, the nominal share.

    Returns
    -------
    matplotlib Axes
        The first of four panels.
    """
    panels = _panels((8.0, 6.6), 2, 2)
    people: dict[str, Floats] = {key: np.asarray(values[key]) for key in ("x", "y")}
    ends = [np.asarray(one[key]) for one in values["served"] for key in ("low", "high")]
    # the same scale in all panels, so that intervals can be compared
    limits = _padded(np.concatenate([*ends, people["y"]]))
    places = (panels[0, 0], panels[0, 1], panels[1, 1])
    for axes, served in zip(places, values["served"], strict=True):
        _draw_served(axes, people, served)
        axes.set_ylim(*limits)
    _draw_misses(panels[1, 0], values)
    return share_legend(panels, places[0], 3, "lower")


def _draw_served(axes: Axes, people: Mapping[str, Floats], served: Mapping[str, Any]) -> None:
    """Draw intervals, medians and outcomes of people in order of x; missed people are marked."""
    x = people["x"]
    y = people["y"]
    low, high, median = (np.asarray(served[key]) for key in ("low", "high", "median"))
    missed = (y < low) | (y > high)
    width = 1 / x.size
    for i, place in enumerate(x[missed]):
        label = "Person whose outcome is missed" if i == 0 else None
        axes.axvspan(
            place - width / 2, place + width / 2, color=RED, alpha=0.22, linewidth=0, label=label
        )
    axes.vlines(x, low, high, color=ORANGE, linewidth=2.5, label="80% interval")
    axes.plot(x, median, "_", color="#7a4f00", markersize=6, markeredgewidth=1.6, label="Median")
    axes.plot(
        x[~missed], y[~missed], "o", color=BLUE, markersize=3.6, zorder=3, label="Outcome inside"
    )
    axes.plot(
        x[missed],
        y[missed],
        "D",
        color=RED,
        markeredgecolor="black",
        markeredgewidth=0.7,
        markersize=4.6,
        zorder=3,
        label="Outcome missed",
    )
    axes.set(xlabel=FEATURE, ylabel=OUTCOME, xlim=(0, 1))
    axes.set_title(
        f"{served['title']}: misses {missed.sum()} of {x.size}", loc="left", fontsize="medium"
    )
    tidy(axes, "y")


def _draw_misses(axes: Axes, values: Mapping[str, Any]) -> None:
    from matplotlib.ticker import PercentFormatter

    grid = np.asarray(values["grid"])
    styles: list[dict[str, Any]] = [
        {"color": RED, "linewidth": 2},
        {"color": BLUE, "linestyle": "--", "linewidth": 2},
    ]
    for style, (name, share) in zip(styles, values["misses"].items(), strict=True):
        axes.plot(grid, share, label=name, **style)
    axes.axhline(
        values["promised"], color=GREY, linestyle=":", linewidth=1.5, zorder=1, label="Nominal"
    )
    axes.set(xlabel=FEATURE, ylabel="Outcomes missed (%)", xlim=(0, 1), ylim=(-0.02, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    axes.set_title("Share missed over outcomes and draws", loc="left", fontsize="medium")
    axes.legend(loc="upper center", edgecolor="none", framealpha=1, fontsize="small")
    tidy(axes, "y")


def plot_two_worlds(values: Mapping[str, Any]) -> Axes:
    """Draw the same data with the distributions of outcomes in each of two worlds.

    Parameters
    ----------
    values : dict
        `x` of people, (n,); for "calibrated" and "sliced" the ends `low` and `high` of the central
        80% of each person's outcomes, (n,); `seen`, row numbers of the observed people, and `y`,
        their outcomes.

    Returns
    -------
    matplotlib Axes
        The first of two panels.
    """
    panels = _panels((8.0, 3.6), 1, 2)
    x = np.asarray(values["x"])
    seen = np.asarray(values["seen"])
    ends = [
        np.asarray(values[world][key])
        for world in ("calibrated", "sliced")
        for key in ("low", "high")
    ]
    limits = _padded(np.concatenate([*ends, np.asarray(values["y"])]))
    titles = {"calibrated": "Calibrated for each person", "sliced": "Calibrated for no person"}
    for axes, (world, title) in zip(panels[0], titles.items(), strict=True):
        low = np.asarray(values[world]["low"])
        high = np.asarray(values[world]["high"])
        axes.vlines(
            x,
            low,
            high,
            color=ORANGE,
            linewidth=2.4,
            label="Central 80% of a person's outcomes in this world",
        )
        axes.plot(
            x[seen],
            values["y"],
            "o",
            color=BLUE,
            markeredgecolor="white",
            markersize=6,
            zorder=3,
            label="Data (the same in both)",
        )
        axes.set(xlabel=FEATURE, xlim=(0, 1), ylim=limits)
        axes.set_title(title, loc="left", fontsize="medium")
        tidy(axes, "y")
    panels[0, 0].set_ylabel(OUTCOME)
    return share_legend(panels, panels[0, 0], 2, "lower")


def _panels(size: tuple[float, float], rows: int, columns: int) -> Any:
    """Return the axes of a new figure, shape (rows, columns)."""
    return new_figure(size).subplots(rows, columns, squeeze=False)


def _padded(values: Floats) -> tuple[float, float]:
    """Return the limits of an axis: the range of the values with a margin of 5% on each side."""
    low = float(values.min())
    high = float(values.max())
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
