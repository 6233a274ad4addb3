"""Exhibits of the credit study: tables and figures with explanations."""

from __future__ import annotations

from functools import partial

import pandas as pd

from reproduction.credit_banks import LINKED, OTHER_SHARES
from reproduction.credit_figures import plot_customers, plot_map, plot_strengths
from reproduction.credit_people import SHARE_UNQUALIFIED
from reproduction.study import Exhibit
from reproduction.sweep import LIKELIHOOD, PAIC, claims_text, means_with_ends, yes_or_no
from reproduction.verdicts import spread_text


def exhibits(
    tables: dict[str, pd.DataFrame], found: pd.DataFrame, places: dict[str, dict[str, float]]
) -> list[Exhibit]:
    """Return the exhibits of the study, in the order of the page.

    Parameters
    ----------
    tables : dict of str to DataFrame
        `claims` and `confirmed`, the verdicts; `rows`, `map` and `fresh`, the underlying measures.
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
                f" {100 * SHARE_UNQUALIFIED:g}% of people have a worthiness below the threshold."
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
        "Small dots are roll-outs, large marks are means by alpha with 95% intervals. Rational"
        " customers either train a network psi(x, y) on the utilities of earlier customers, as in"
        " the paper, or know the probability that the bank approves them.",
        draw=partial(plot_customers, own),
        alt=(
            "Three panels against alpha: the bank's utility per person, its utility per applicant,"
            " and the share of unqualified applicants"
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
    """Return means by alpha with the ends of their 95% t intervals."""
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
        f"Means over roll-outs with {others} of people below the threshold, because the paper does"
        " not report its threshold. Customers know the bank.",
        table=table,
    )


def _map(found: pd.DataFrame, places: dict[str, dict[str, float]]) -> Exhibit:
    alphas = {bank: place["alpha"] for bank, place in places.items()}
    # for each kind of bank, the alpha chosen for it
    drawn = found[found["alpha"] == found["bank"].map(alphas)]
    return Exhibit(
        "map",
        "Where randomization pays",
        "A bank's training labels can be wrong in two ways: labels of the youngest 30% of people"
        " are too high (rows), and the least worthy people have no labels (columns; an earlier"
        " lender with more information refused them). Each cell shows the gain of the randomized"
        " bank over the deterministic bank with the same forecasts, from customers who know it"
        " (* if the 95% interval excludes 0), and below it the earnings of both per person, at the"
        " chosen alpha. The intervals are not corrected for the number of cells; the new roll-outs"
        " below need no such correction. Certificates are means of bounds with 95% confidence."
        " Deterred people are approved by the deterministic bank, but their probability of"
        " approval by the randomized bank is too small for qualified people to apply.",
        draw=partial(plot_map, drawn, alphas),
        alt=(
            "Two tables of coloured cells: gain by randomization against the error and the"
            " selection of the labels"
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
        "One deterministic bank, boosted trees with the distribution of their residuals, and the"
        " entropic link around it. A weak link (alpha near 1) changes little. With a link of medium"
        " strength many people have an approval probability between 1/3 and 5/7, where only"
        " unqualified people apply. A strong link deters everybody, unless the bank's forecasts are"
        " both wrong and very sharp. No link earns more than the oracle cut, the best deterministic"
        " cut on the same forecasts.",
        draw=partial(plot_strengths, cells, places),
        alt=(
            "Panels against the link's alpha: the bank's utility with rational customers, and if"
            " everybody applies"
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
        "The chosen cells on new roll-outs",
        "For each kind of bank, the cell and alpha whose gain on the map has the largest lower"
        f" confidence end, among those with positive earnings: {on_map}. The gain need not be"
        f" significant. On new roll-outs, which were not used for the choice: {claimed}. In the"
        " table, earned_from_all is the utility from people whose approval probability is high"
        " enough for qualified and unqualified people to apply, and lost_to_exploiters that from"
        " people for whom it is high enough only if they are unqualified.",
        table=parts,
    )
