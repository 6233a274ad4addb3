"""Panels of study figures: legends and dots of single repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_dots(axes: Axes, x: pd.Series[Any], y: pd.Series[Any], marker: str, color: str) -> None:
    """Draw one faint dot per repetition."""
    axes.plot(x, y, marker, color=color, alpha=0.25, markersize=3, markeredgewidth=0)


def share_legend(
    panels: Any, shown: Axes, ncols: int, side: Literal["upper", "lower"] = "upper"
) -> Axes:
    """Place the legend of one panel outside all panels, and return the first panel."""
    figure = shown.get_figure(root=True)
    assert figure is not None
    handles, labels = shown.get_legend_handles_labels()
    loc: Any = f"outside {side} center"
    figure.legend(handles, labels, loc=loc, ncols=ncols, frameon=False)
    first: Axes = panels.flat[0]
    return first
