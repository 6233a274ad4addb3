"""Figures of the credit study."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.figures import BLUE, GREY, ORANGE, RED, new_figure, tidy
from reproduction.credit_banks import LINKED
from reproduction.panels import plot_dots, share_legend
from reproduction.sweep import LIKELIHOOD, NETWORK, PAIC
from reproduction.verdicts import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHO = {
    "random": ("Everybody applies", GREY, "^"),
    "learning": ("Rational: learned from earlier customers", ORANGE, "o"),
    "informed": ("Rational: know the bank", BLUE, "s"),
}
MEASURES = {
    "utility": "Bank's utility per person",
    "per_applicant": "Bank's utility per applicant",
    "exploiting": "Unqualified applicants (share of people)",
}


def plot_customers(rows: pd.DataFrame) -> Axes:
    """Draw the bank's earnings and the share of unqualified applicants against alpha.

    Parameters
    ----------
    rows : DataFrame
        Measures of `measure_rollout`, at one threshold, with or without recalibration.
    """
    figure = new_figure((11.0, 4.0))
    panels = figure.subplots(1, len(MEASURES))
    for axes, (measure, label) in zip(panels, MEASURES.items(), strict=True):
        for shift, (who, (name, color, marker)) in enumerate(WHO.items()):
            column = f"{measure}_{who}"
            # shifted, so that marks do not overlap
            plot_dots(axes, rows["alpha"] + 0.012 * (shift - 1), rows[column], marker, color)
            ends = [
                interval(own.to_numpy(dtype=np.float64)) for _, own in rows.groupby("alpha")[column]
            ]
            mean, low, high = np.array(ends).T
            places = np.unique(rows["alpha"]) + 0.012 * (shift - 1)
            reach = np.nan_to_num([mean - low, high - mean])
            axes.errorbar(
                places, mean, yerr=reach, fmt=f"{marker}-", color=color, markersize=5.5, label=name
            )
        axes.set(xlabel="α (1: likelihood only)", ylabel=label)
        tidy(axes, "y")
    return share_legend(panels, panels[0], 3)


def plot_map(found: pd.DataFrame, alphas: dict[str, float]) -> Axes:
    """Draw the gain of the randomized bank over the deterministic one, for each cell.

    Parameters
    ----------
    found : DataFrame
        Result of `advantages`.
    alphas : dict of str to float
        The alpha to draw for each kind of bank.
    """
    figure = new_figure((11.0, 4.6))
    kinds = [kind for kind in (LINKED, NETWORK) if kind in alphas]
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    own = found[found["alpha"] == found["bank"].map(alphas)]
    # colours are symmetric about 0, on a scale that does not exaggerate small gains
    limit = max(float(own["more"].abs().max()), 0.1)
    for axes, kind in zip(panels, kinds, strict=True):
        table = own[own["bank"] == kind].pivot(index="wrong", columns="selected", values="more")
        image = axes.imshow(table, cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto")
        rows = list(table.index)
        columns = list(table.columns)
        for row in own[own["bank"] == kind].to_dict("records"):
            _write_cell(axes, columns.index(row["selected"]), rows.index(row["wrong"]), row, limit)
        axes.set_xticks(range(table.shape[1]), [f"{100 * value:g}%" for value in columns])
        axes.set_yticks(range(table.shape[0]), [f"{value:g}" for value in rows])
        axes.set(
            xlabel="Least worthy people without labels",
            title=f"{kind[0].upper()}{kind[1:]}, α = {alphas[kind]:g}",
        )
        axes.title.set_fontsize("medium")
    panels[0].set_ylabel("Labels of young people too high by (sd)")
    figure.colorbar(
        image,
        ax=list(panels),
        label="Utility per person, randomized minus deterministic",
        shrink=0.9,
    )
    first: Axes = panels[0]
    return first


def _write_cell(axes: Axes, x: int, y: int, row: dict[Hashable, Any], limit: float) -> None:
    """Write the gain, starred if its interval excludes 0, above the earnings of both banks."""
    star = "*" if row["low"] > 0 or row["high"] < 0 else ""
    text = f"{row['more']:+.2f}{star}\n{row['earned']:.2f} / {row['deterministic']:.2f}"
    color = "white" if abs(row["more"]) > 0.65 * limit else "black"
    axes.text(x, y, text, ha="center", va="center", fontsize="small", color=color)


def plot_strengths(cells: pd.DataFrame, places: list[tuple[float, float]]) -> Axes:
    """Draw the earnings of a link around one deterministic bank against alpha, in some cells.

    Parameters
    ----------
    cells : DataFrame
        Measures of `measure_cell`, with `seed`, `wrong` and `selected`.
    places : list of (wrong, selected)
        The cells.
    """
    figure = new_figure((4.0 * len(places), 3.9))
    panels = figure.subplots(1, len(places), squeeze=False, sharey=True)[0]
    linked = cells[cells["bank"] == LINKED]
    for axes, (wrong, selected) in zip(panels, places, strict=True):
        own = linked[(linked["wrong"] == wrong) & (linked["selected"] == selected)]
        means = own.groupby("alpha")[
            ["utility_random", "utility_informed", "utility_best_cut"]
        ].mean()
        plot_dots(axes, own["alpha"], own["utility_informed"], "s", BLUE)
        axes.plot(
            means.index, means["utility_informed"], "s-", color=BLUE, label="Rational customers"
        )
        axes.plot(
            means.index, means["utility_random"], "^--", color=GREY, label="Everybody applies"
        )
        axes.axhline(
            means["utility_best_cut"].iloc[0],
            color=RED,
            linestyle=":",
            label="Oracle cut (best deterministic cut)",
        )
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xscale("log")
        ticks = [
            alpha for alpha in means.index if alpha in (means.index.min(), PAIC, 0.4, LIKELIHOOD)
        ]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel="α of the link (1: deterministic)")
        axes.set_title(
            f"Labels of young people {wrong:g} sd too high,\nleast worthy {100 * selected:g}%"
            " without labels",
            fontsize="medium",
        )
        tidy(axes, "y")
    panels[0].set_ylabel("Bank's utility per person")
    return share_legend(panels, panels[0], 3)
