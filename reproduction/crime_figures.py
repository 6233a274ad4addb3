"""Figures of the crime study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand.figures import BLUE, GREY, ORANGE, SIZE_TITLE, as_points, new_figure, tidy
from reproduction.crime_split import LINKED, MASSES
from reproduction.panels import plot_dots, share_legend
from reproduction.sweep import LIKELIHOOD, NETWORK, PAIC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARPNESS = {
    "nll": "Log score (nats),\nlower is sharper",
    "cell_log_score": "Cell log score (nats),\nlower is sharper",
    "mean_std": "Mean standard deviation\n(crime rate, 0 to 1)",
    "crps": "CRPS (crime rate, 0 to 1),\nlower is better",
}
ERRORS = {
    "worst_error": "Error of the oracle worst 20%\n(percentage points)",
    "interpretable_error": "Error of the worst scanned group\n(percentage points)",
}


def plot_sharpness(rows: pd.DataFrame, *, recalibrated: bool) -> Axes:
    """Draw sharpness against worst-group error, for all measures and both kinds of groups.

    Parameters
    ----------
    rows : DataFrame
        Rows of one protocol: the measures of `measure_split`, with `worst_error`.
    recalibrated : bool
        Whether to show recalibrated forecasts of the network.
    """
    figure = new_figure((11.0, 6.4))
    panels = figure.subplots(len(ERRORS), len(SHARPNESS), sharex="row")
    network = rows[(rows["forecaster"] == NETWORK) & (rows["recalibrated"] == recalibrated)]
    linked = rows[(rows["forecaster"] == LINKED) & (rows["recalibrated"] == recalibrated)]
    for line, (error, error_label) in zip(panels, ERRORS.items(), strict=True):
        for axes, (score, score_label) in zip(line, SHARPNESS.items(), strict=True):
            _front(axes, network, error, score, ORANGE, "o", "Paper's network")
            if len(linked):
                _front(axes, linked, error, score, BLUE, "s", "Link around an ensemble")
            # in theory the price is added to the log score of a base that is the true distribution
            if len(linked) and (error, score) == ("worst_error", "cell_log_score"):
                means = linked.groupby("alpha")[[error, "base_plus_price"]].mean()
                axes.plot(
                    means[error],
                    means["base_plus_price"],
                    ":",
                    color=BLUE,
                    label="Ensemble + price of its link",
                )
            axes.set(xlabel=error_label, ylabel=score_label)
            axes.xaxis.set_major_formatter(as_points)
            tidy(axes, "y")
    _mark_alphas(panels[0, 0], network)
    return share_legend(panels, panels[0, 1], 3)


def _front(
    axes: Axes, rows: pd.DataFrame, error: str, score: str, color: str, marker: str, label: str
) -> None:
    plot_dots(axes, rows[error], rows[score], marker, color)
    means = rows.groupby("alpha")[[error, score]].mean()
    axes.plot(means[error], means[score], f"{marker}-", color=color, markersize=5.5, label=label)


def _mark_alphas(axes: Axes, rows: pd.DataFrame) -> None:
    means = rows.groupby("alpha")[["worst_error", "nll"]].mean()
    for alpha in (means.index.min(), PAIC, means.index.max()):
        if alpha in means.index:
            at = tuple(means.loc[alpha].to_numpy(dtype=np.float64).tolist())
            axes.annotate(
                f"α = {alpha:g}", at, (6, 6), textcoords="offset points", fontsize="small"
            )


def plot_sizes(rows: pd.DataFrame, null: dict[float, dict[str, list[float]]]) -> Axes:
    """Draw the worst-group error against the group size, as trained and recalibrated.

    Parameters
    ----------
    rows : DataFrame
        Rows of one protocol.
    null : dict of float to dict
        By alpha, the null distribution of the errors over `MASSES`: 90% lie from `low` to `high`.
    """
    figure = new_figure((9.0, 4.2))
    panels = figure.subplots(1, 2, sharey=True)
    network = rows[rows["forecaster"] == NETWORK]
    styles = dict(zip(sorted(null), ((BLUE, "o"), (ORANGE, "s")), strict=True))
    # the null distribution is the same before and after recalibration
    for axes, recalibrated in zip(panels, (False, True), strict=True):
        for alpha, (color, marker) in styles.items():
            own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)]
            _size_curve(axes, own, alpha, color, marker)
            _null_band(axes, null[alpha], alpha, color)
        axes.set_title("Recalibrated" if recalibrated else "As trained", fontsize="medium")
        axes.set(xlabel=SIZE_TITLE, xlim=(0, 1.02), ylim=(0, 0.52))
        axes.xaxis.set_major_formatter(_as_percent)
        axes.yaxis.set_major_formatter(as_points)
        tidy(axes, "y")
    panels[0].set_ylabel("Calibration error of the worst group\n(percentage points)")
    panels[0].legend(frameon=False, fontsize="small")
    panels[1].axhline(0, color=GREY, linewidth=0.8)
    first: Axes = panels[0]
    return first


def _size_curve(axes: Axes, rows: pd.DataFrame, alpha: float, color: str, marker: str) -> None:
    """Draw the mean error over splits with a band of one standard deviation."""
    curves = np.array(rows["worst_errors"].tolist())
    mean = curves.mean(axis=0)
    spread = curves.std(axis=0, ddof=1 if len(curves) > 1 else 0)
    axes.fill_between(MASSES, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
    label = f"α = {alpha:g} ({'likelihood' if alpha == LIKELIHOOD else 'PAIC'})"
    axes.plot(MASSES, mean, color=color, marker=marker, markevery=4, markersize=5, label=label)


def _null_band(axes: Axes, null: dict[str, list[float]], alpha: float, color: str) -> None:
    """Draw the band of errors that the search finds in calibrated forecasts."""
    name = "deterministic" if alpha == LIKELIHOOD else f"entropic link, α = {alpha:g}"
    axes.fill_between(
        MASSES,
        null["low"],
        null["high"],
        facecolor="none",
        edgecolor=color,
        hatch="////",
        linewidth=0.5,
        label=f"Calibrated, {name}",
    )


def _as_percent(value: float, _: float) -> str:
    return f"{100 * value:.0f}%"
