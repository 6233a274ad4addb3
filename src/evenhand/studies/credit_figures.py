"""Figures of the credit study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand.figures import BLUE, GREY, ORANGE, RED, new_figure, tidy
from evenhand.studies.credit_claims import LIKELIHOOD, PAIC
from evenhand.studies.credit_world import LINKED, NETWORK
from evenhand.studies.verdicts import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHO = {
    "random": ("Everybody applies", GREY, "^"),
    "learning": ("Rational: learned from earlier ones", ORANGE, "o"),
    "informed": ("Rational: know the bank", BLUE, "s"),
}
MEASURES = {
    "utility": "Bank's utility per person",
    "per_applicant": "Bank's utility per applicant",
    "exploiting": "Unqualified who apply (share of people)",
}


def plot_customers(rows: pd.DataFrame) -> Axes:
    """Draw what the bank earns along the alphas, and how many unqualified people apply.

    Parameters
    ----------
    rows : DataFrame
        What `one_rollout` measures, at one threshold, with or without recalibration.
    """
    figure = new_figure((11.0, 4.0))
    panels = figure.subplots(1, len(MEASURES))
    for axes, (measure, label) in zip(panels, MEASURES.items(), strict=True):
        for shift, (who, (name, color, marker)) in enumerate(WHO.items()):
            column = f"{measure}_{who}"
            # beside each other, so that one does not hide the other
            at = rows["alpha"] + 0.012 * (shift - 1)
            axes.plot(
                at, rows[column], marker, color=color, alpha=0.25, markersize=3, markeredgewidth=0
            )
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
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    first: Axes = panels[0]
    return first


def plot_map(found: pd.DataFrame, alphas: dict[str, float]) -> Axes:
    """Draw, for each cell, what the randomized bank earns more than the deterministic one.

    Parameters
    ----------
    found : DataFrame
        `advantages`.
    alphas : dict of str to float
        Of each kind of bank the alpha that is drawn.
    """
    figure = new_figure((11.0, 4.6))
    kinds = [kind for kind in (LINKED, NETWORK) if kind in alphas]
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    own = found[found["alpha"] == found["bank"].map(alphas)]
    limit = max(float(own["more"].abs().max()), 0.1)
    for axes, kind in zip(panels, kinds, strict=True):
        table = own[own["bank"] == kind].pivot(index="wrong", columns="selected", values="more")
        image = axes.imshow(table, cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto")
        rows = list(table.index)
        columns = list(table.columns)
        for row in own[own["bank"] == kind].to_dict("records"):
            i = rows.index(row["wrong"])
            j = columns.index(row["selected"])
            sure = "*" if row["low"] > 0 or row["high"] < 0 else ""
            text = f"{row['more']:+.2f}{sure}\n{row['earned']:.2f} / {row['deterministic']:.2f}"
            dark = abs(row["more"]) > 0.65 * limit
            axes.text(
                j,
                i,
                text,
                ha="center",
                va="center",
                fontsize="small",
                color="white" if dark else "black",
            )
        axes.set_xticks(range(table.shape[1]), [f"{100 * value:g}%" for value in columns])
        axes.set_yticks(range(table.shape[0]), [f"{value:g}" for value in rows])
        axes.set(
            xlabel="Least worthy people whose labels are missing",
            title=f"{kind[0].upper()}{kind[1:]}, α = {alphas[kind]:g}",
        )
        axes.title.set_fontsize("medium")
    panels[0].set_ylabel("Labels of the young too high by (sd)")
    figure.colorbar(
        image,
        ax=list(panels),
        label="Utility per person, randomized less deterministic",
        shrink=0.9,
    )
    first: Axes = panels[0]
    return first


def plot_strengths(cells: pd.DataFrame, places: list[tuple[float, float]]) -> Axes:
    """Draw what a link around one deterministic bank earns along its alphas, in some cells.

    Parameters
    ----------
    cells : DataFrame
        What `one_cell` measures, with `seed`, `wrong` and `selected`.
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
        axes.plot(
            own["alpha"],
            own["utility_informed"],
            "s",
            color=BLUE,
            alpha=0.25,
            markersize=3,
            markeredgewidth=0,
        )
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
            label="Best deterministic cut, in hindsight",
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
            f"Labels {wrong:g} sd too high for the young,\nleast worthy {100 * selected:g}%"
            " missing",
            fontsize="medium",
        )
        tidy(axes, "y")
    panels[0].set_ylabel("Bank's utility per person")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    first: Axes = panels[0]
    return first
