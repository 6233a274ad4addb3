"""Tables and figures of the credit study, with what they show."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from evenhand.experiments._credit_claims import LIKELIHOOD, PAIC
from evenhand.experiments._credit_figures import plot_customers, plot_map, plot_strengths
from evenhand.experiments._credit_world import OTHER_SHARES, SHARE_UNQUALIFIED
from evenhand.experiments._verdicts import interval
from evenhand.experiments.study import Exhibit


def exhibits(
    games: pd.DataFrame,
    cells: pd.DataFrame,
    fresh: pd.DataFrame,
    verdicts: pd.DataFrame,
    proofs: pd.DataFrame,
    found: pd.DataFrame,
) -> list[Exhibit]:
    """Everything that the study shows, in the order of the page."""
    return [
        Exhibit(
            "claims",
            "The paper's claims",
            "A claim holds if all of its interval lies on its side, and does not if all of it lies on the other. The "
            f"threshold is the worthiness that {100 * SHARE_UNQUALIFIED:g}% of people fall short of.",
            table=verdicts,
        ),
        _customers(games, recalibrated=True),
        _customers(games, recalibrated=False),
        _thresholds(games),
        Exhibit(
            "map",
            "Where randomization pays",
            "A map over two ways in which a bank can be wrong: its labels of the youngest three tenths are too high, "
            "and it has no labels of the least worthy, whom an earlier lender refused. Each cell: what the bank at "
            f"alpha {PAIC:g} earns more than the deterministic one from customers who know it (* where the 95% "
            "interval leaves out 0), and below what both earn per person. All alphas and the certificates are in the "
            "table.",
            draw=partial(plot_map, found),
            alt="Two tables of coloured cells: gain by randomization against how wrong and how selected the labels are",
            table=found,
            shown=12,
        ),
        _strengths(cells),
        _confirmed(fresh, proofs),
    ]


def _customers(games: pd.DataFrame, *, recalibrated: bool) -> Exhibit:
    number, how = (5, "recalibrated") if recalibrated else (7, "as trained")
    own = games[(games["recalibrated"] == recalibrated) & (games["share_unqualified"] == SHARE_UNQUALIFIED)]
    return Exhibit(
        f"customers-{'recalibrated' if recalibrated else 'trained'}",
        f"Random and rational customers, {how} (the paper's Figure {number})",
        "Each small dot is a roll-out, each large mark the mean of an alpha. Rational customers either learn a network "
        "psi(x, y) from what earlier customers got, as in the paper, or know the bank's chance of a yes.",
        draw=partial(plot_customers, own),
        alt="Three panels along the alphas: the bank's utility per person, per applicant, and unqualified applicants",
        table=_means(
            own,
            [f"{measure}_{who}" for who in ("random", "learning", "informed") for measure in ("utility", "exploiting")],
        ),
    )


def _means(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Means along the alphas with the ends of their 95% t intervals."""
    table = []
    for alpha, own in rows.groupby("alpha"):
        row: dict[str, Any] = {"alpha": alpha}
        for column in columns:
            mean, low, high = interval(own[column].to_numpy(dtype="float64"))
            row |= {column: mean, f"{column}_low": low, f"{column}_high": high}
        table.append(row)
    return pd.DataFrame(table)


def _thresholds(games: pd.DataFrame) -> Exhibit:
    names = ["utility_random", "utility_informed", "per_applicant_informed", "exploiting_informed", "bad_share_of_yes"]
    ends = games[games["alpha"].isin((PAIC, LIKELIHOOD))]
    table = ends.groupby(["share_unqualified", "recalibrated", "alpha"])[names].mean().reset_index()
    table["recalibrated"] = table["recalibrated"].map({True: "yes", False: "no"})
    others = ", ".join(f"{100 * share:g}%" for share in OTHER_SHARES)
    return Exhibit(
        "thresholds",
        "Other thresholds",
        f"Means over roll-outs where {others} of people fall short of the threshold: the paper does not say where its "
        "threshold lies. Customers know the bank.",
        table=table,
    )


def _strengths(cells: pd.DataFrame) -> Exhibit:
    wrong, selected = sorted(cells["wrong"].unique()), sorted(cells["selected"].unique())
    places = list(dict.fromkeys([(wrong[0], selected[0]), (wrong[-1], selected[0]), (wrong[0], selected[-1])]))
    return Exhibit(
        "strengths",
        "How much randomization",
        "One deterministic bank, boosted trees with the law of their residuals, and the entropic link around it. A "
        "weak link pays most to exploiters: people with a chance between a third and five sevenths, of whom only the "
        "unqualified apply. A strong one shuts everybody out, unless the bank is as sure of itself as it is wrong. No "
        "link rises above the best deterministic cut on the same forecasts.",
        draw=partial(plot_strengths, cells, places),
        alt="Panels along the link's alpha: the bank's utility with rational customers and with everybody",
    )


def _confirmed(fresh: pd.DataFrame, proofs: pd.DataFrame) -> Exhibit:
    names = ["utility_informed", "earned_from_all", "lost_to_exploiters", "open_to_all", "open_to_bad_only"]
    names += ["bad_share_of_yes", "utility_best_cut", "certified_average", "certified_error"]
    present = [name for name in names if name in fresh]
    parts = fresh.groupby(["bank", "wrong", "selected", "alpha"], sort=False)[present].mean().reset_index()
    claimed = "; ".join(f"{row.measured}: {spread_text(row)}, {row.verdict}" for row in proofs.itertuples())
    return Exhibit(
        "confirmed",
        "The settled cells on fresh roll-outs",
        "Of each kind of bank the cell and alpha that were surest to earn more on the map, of those that earn "
        f"anything, on roll-outs that the search did not use. {claimed}. In the table, `earned_from_all` comes from "
        "people whose chance of a yes lets anybody like them apply, `lost_to_exploiters` from those whose chance is "
        "worth it for the unqualified only.",
        table=parts,
    )


def spread_text(row: Any) -> str:
    """Write a value with the ends of its interval."""
    return f"{row.value:.3f}, {row.low:.3f} to {row.high:.3f}"
