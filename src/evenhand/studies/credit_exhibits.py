"""Exhibits of the credit study: tables and figures with their texts."""

from __future__ import annotations

from functools import partial

import pandas as pd

from evenhand.studies.credit_banks import LINKED, OTHER_SHARES
from evenhand.studies.credit_figures import plot_customers, plot_map, plot_strengths
from evenhand.studies.credit_people import SHARE_UNQUALIFIED
from evenhand.studies.study import Exhibit
from evenhand.studies.sweep import LIKELIHOOD, PAIC, claims_text, means_with_ends, yes_or_no
from evenhand.studies.verdicts import spread_text


def exhibits(
    tables: dict[str, pd.DataFrame], found: pd.DataFrame, places: dict[str, dict[str, float]]
) -> list[Exhibit]:
    """Exhibits of the study, in the order of the page.

    Parameters
    ----------
    tables : dict of str to DataFrame
        `claims` and `confirmed`, the verdicts; `rows`, `map` and `fresh`, the measures behind them.
    found : DataFrame
        `advantages` of the map.
    places : dict of str to dict
        The cell and alpha chosen for each kind of bank.
    """
    games = tables["rows"]
    return [
        Exhibit(
            "claims",
            "The paper's claims",
            claims_text(
                f" The threshold is the worthiness that {100 * SHARE_UNQUALIFIED:g}% of people fall"
                " short of."
            ),
            table=tables["claims"],
        ),
        _customers(games, recalibrated=True),
        _customers(games, recalibrated=False),
        _thresholds(games),
        _map(found, places),
        _strengths(tables["map"], found, places[LINKED]),
        _confirmed(tables["fresh"], found, tables["confirmed"]),
    ]


def _customers(games: pd.DataFrame, *, recalibrated: bool) -> Exhibit:
    number, how = (5, "recalibrated") if recalibrated else (7, "as trained")
    own = games[
        (games["recalibrated"] == recalibrated) & (games["share_unqualified"] == SHARE_UNQUALIFIED)
    ]
    return Exhibit(
        f"customers-{'recalibrated' if recalibrated else 'trained'}",
        f"Random and rational customers, {how} (the paper's Figure {number})",
        "Each small dot is a roll-out, each large mark the mean of an alpha with its 95% interval."
        " Rational customers either learn a network psi(x, y) from what earlier customers got, as"
        " in the paper, or know the bank's chance of a yes.",
        draw=partial(plot_customers, own),
        alt=(
            "Three panels along the alphas: the bank's utility per person, per applicant, and"
            " unqualified applicants"
        ),
        table=_means(
            own,
            [
                f"{measure}_{who}"
                for who in ("random", "learning", "informed")
                for measure in ("utility", "exploiting")
            ],
        ),
    )


def _means(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Means along the alphas with the ends of their 95% t intervals."""
    return pd.DataFrame(
        {"alpha": alpha} | means_with_ends(own, columns) for alpha, own in rows.groupby("alpha")
    )


def _thresholds(games: pd.DataFrame) -> Exhibit:
    names = [
        "utility_random",
        "utility_informed",
        "per_applicant_informed",
        "exploiting_informed",
        "bad_share_of_yes",
    ]
    ends = games[games["alpha"].isin((PAIC, LIKELIHOOD))]
    table = ends.groupby(["share_unqualified", "recalibrated", "alpha"])[names].mean().reset_index()
    table["recalibrated"] = table["recalibrated"].map(yes_or_no)
    others = ", ".join(f"{100 * share:g}%" for share in OTHER_SHARES)
    return Exhibit(
        "thresholds",
        "Other thresholds",
        f"Means over roll-outs where {others} of people fall short of the threshold: the paper does"
        " not say where its threshold lies. Customers know the bank.",
        table=table,
    )


def _map(found: pd.DataFrame, places: dict[str, dict[str, float]]) -> Exhibit:
    alphas = {bank: place["alpha"] for bank, place in places.items()}
    # one alpha per kind of bank: the one that was chosen for it
    drawn = found[found["alpha"] == found["bank"].map(alphas)]
    return Exhibit(
        "map",
        "Where randomization pays",
        "A map over two ways in which a bank can be wrong: its labels of the youngest three tenths"
        " are too high, and it has no labels of the least worthy (by their true worthiness: an"
        " earlier lender refused them and saw more than the bank does). Each cell: what the"
        " randomized bank earns more than the deterministic one with the same forecasts, from"
        " customers who know it (* where the 95% interval leaves out 0), and below what both earn"
        " per person, at the alpha that was settled on. The intervals do not allow for the many"
        " cells; the fresh roll-outs below do. Certificates are means of bounds with 95%"
        " confidence. Who is shut out: those to whom the deterministic bank says yes, but whose"
        " chance of it is no longer worth it to the qualified.",
        draw=partial(plot_map, drawn, alphas),
        alt=(
            "Two tables of coloured cells: gain by randomization against how wrong and how selected"
            " the labels are"
        ),
        table=drawn,
    )


def _strengths(cells: pd.DataFrame, found: pd.DataFrame, place: dict[str, float]) -> Exhibit:
    wrong = sorted(cells["wrong"].unique())
    selected = sorted(cells["selected"].unique())
    shown = [(wrong[0], selected[0]), (wrong[-1], selected[0]), (place["wrong"], place["selected"])]
    # the chosen cell may be one of the corners
    places = list(dict.fromkeys(shown))
    return Exhibit(
        "strengths",
        "How much randomization",
        "One deterministic bank, boosted trees with the law of their residuals, and the entropic"
        " link around it. A weak link (alpha near 1) changes little; at a middling one many people"
        " have a chance between a third and five sevenths, of whom only the unqualified apply; a"
        " strong one shuts everybody out, unless the bank is as sure of itself as it is wrong. No"
        " link rises above the best deterministic cut on the same forecasts.",
        draw=partial(plot_strengths, cells, places),
        alt=(
            "Panels along the link's alpha: the bank's utility with rational customers and with"
            " everybody"
        ),
        table=found,
        shown=7,
    )


def _confirmed(fresh: pd.DataFrame, found: pd.DataFrame, proofs: pd.DataFrame) -> Exhibit:
    keys = ["bank", "wrong", "selected", "alpha"]
    names = [
        "utility_informed",
        "utility_plain",
        "utility_random",
        "utility_best_cut",
        "earned_from_all",
    ]
    names += [
        "lost_to_exploiters",
        "plain_bad_share",
        "shut_out",
        "shut_out_bad_share",
        "certified_error",
    ]
    parts = fresh.groupby(keys, sort=False)[names].mean().reset_index()
    searched = parts[keys].merge(found, on=keys)
    on_map = "; ".join(
        f"{row.bank} {row.more:+.3f} ({row.low:.3f} to {row.high:.3f})"
        for row in searched.itertuples()
    )
    claimed = "; ".join(
        f"{row.claim}: {spread_text(row)}, {row.verdict}" for row in proofs.itertuples()
    )
    return Exhibit(
        "confirmed",
        "The settled cells on fresh roll-outs",
        "Of each kind of bank the cell and alpha that were surest to earn more on the map, of"
        f" those that earn anything, though the search need not have found anything: {on_map}. On"
        f" roll-outs that the search did not use: {claimed}. In the table, earned_from_all comes"
        " from people whose chance of a yes lets anybody like them apply, lost_to_exploiters from"
        " those whose chance is worth it for the unqualified only.",
        table=parts,
    )
