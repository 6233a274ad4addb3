"""Claims of the paper about the lending game, and cells of the map where randomization pays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.studies.credit_people import SHARE_UNQUALIFIED
from evenhand.studies.sweep import LIKELIHOOD, PAIC, recalibration_claim, values_at
from evenhand.studies.verdicts import Claim, interval, judge

CELL = ["bank", "wrong", "selected"]

RATIONAL = {"learning": "who learned from earlier ones", "informed": "who know the bank"}
"""Kinds of rational customers."""


def claims(rows: pd.DataFrame) -> list[Claim]:
    """List the paper's claims about the game.

    Parameters
    ----------
    rows : DataFrame
        Measures of `measure_rollout`, with `seed`.
    """
    # the threshold of the figures; others are in a table of their own
    drawn = rows[rows["share_unqualified"] == SHARE_UNQUALIFIED]
    return [
        *_claims_of_alphas(drawn, True, ", recalibrated"),
        *_claims_of_alphas(drawn, False, ""),
        *(recalibration_claim(drawn, alpha) for alpha in (PAIC, LIKELIHOOD)),
    ]


def _claims_of_alphas(rows: pd.DataFrame, recalibrated: bool, how: str) -> Iterator[Claim]:
    """Claims that compare banks of the two alphas, as trained or recalibrated."""
    small = f"alpha {PAIC:g}"
    large = f"alpha {LIKELIHOOD:g}"

    def more(column: str) -> Floats:
        """Measure at the smaller alpha less that at the larger one, by roll-out."""
        at_paic = values_at(rows, column, PAIC, recalibrated)
        return at_paic - values_at(rows, column, LIKELIHOOD, recalibrated)

    claim = f"With random customers the individually calibrated bank earns less{how}"
    measured = f"utility per person at {small} less that at {large}"
    yield Claim(claim, measured, more("utility_random"), is_above=False)
    claim = f"With rational customers it earns more{how}"
    for who, which in RATIONAL.items():
        for column, unit in (("utility", "person"), ("per_applicant", "applicant")):
            measured = f"utility per {unit} at {small} less that at {large}, customers {which}"
            values = more(f"{column}_{who}")
            yield Claim(claim, measured, values, is_headline=column == "utility")
    claim = f"It has fewer exploitative customers{how}"
    for who, which in RATIONAL.items():
        measured = f"share of people, {which}, who are unqualified and apply: {small} less {large}"
        yield Claim(claim, measured, more(f"exploiting_{who}"), is_above=False)
    claim = (
        f"Of the people it says yes to at most 25% are unqualified, {small}, random customers{how}"
    )
    share = values_at(rows, "bad_share_of_yes", PAIC, recalibrated)
    yield Claim(claim, "share of its yes", share, 0.25, is_above=False)


def advantages(cells: pd.DataFrame) -> pd.DataFrame:
    """Gains of each randomized bank over a deterministic one with the same forecasts.

    Both meet customers who know the bank.

    Parameters
    ----------
    cells : DataFrame
        Measures of `measure_cell`, with `seed`, `wrong` and `selected`.

    Returns
    -------
    DataFrame
        A row per bank, cell and alpha below 1: `more` with `low` and `high`, 95% t intervals over
        roll-outs; what both `earned`; the shares of unqualified people among those whom the
        deterministic bank approves, and among those of them for whom the randomized one is no
        longer worth it to the qualified; the certificates of both.
    """
    table = []
    randomized = cells[cells["alpha"] < 1]
    for place, own in randomized.groupby([*CELL, "alpha"], sort=False):
        gains, plain = (
            own[name].to_numpy(dtype=np.float64) for name in ("utility_informed", "utility_plain")
        )
        # paired by roll-out: both banks meet the same people
        more, low, high = interval(gains - plain)
        row: dict[str, Any] = dict(zip([*CELL, "alpha"], place, strict=True))
        row |= {
            "more": more,
            "low": low,
            "high": high,
            "earned": gains.mean(),
            "deterministic": plain.mean(),
        }
        row |= {"unqualified among its yes": own["plain_bad_share"].mean()}
        row |= {"... and among those shut out": own["shut_out_bad_share"].mean()}
        row |= {"certified every fifth": own["certified_error"].mean()}
        row |= {"certified average": own["certified_average"].mean()}
        table.append(
            row | {"certified average, deterministic": own["plain_certified_average"].mean()}
        )
    return pd.DataFrame(table)


def choose_cells(found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Choose the cell and alpha to confirm for each kind of bank, by the lower end of the gain.

    Only cells with positive earnings count: a bank that stays closed earns 0, which is more than
    the earnings of a bank that loses money.
    """
    chosen = {}
    for bank, own in found.groupby("bank", sort=False):
        # a bank that approves nobody earns 0
        earning = own[own["earned"] > 0] if (own["earned"] > 0).any() else own
        lower = earning["low"].fillna(earning["more"])
        best = earning.iloc[int(lower.to_numpy(dtype=np.float64).argmax())]
        chosen[str(bank)] = {name: float(best[name]) for name in ("wrong", "selected", "alpha")}
    return chosen


def judge_chosen(cells: pd.DataFrame) -> pd.DataFrame:
    """Judge the chosen cells on fresh roll-outs: whether randomization earns more there, and why.

    Parameters
    ----------
    cells : DataFrame
        Measures of `measure_cell` in the chosen cells, with `seed`, `wrong` and `selected`.
    """
    groups = cells.groupby([*CELL, "alpha"], sort=False)
    return judge(claim for _, own in groups for claim in _claims_of_cell(own))


def _claims_of_cell(own: pd.DataFrame) -> Iterator[Claim]:
    place = own.iloc[0]
    earned, plain, everybody, best = (
        own[name].to_numpy(dtype=np.float64)
        for name in ("utility_informed", "utility_plain", "utility_random", "utility_best_cut")
    )
    labels = (
        f"labels of the young {place['wrong']:g} sd too high, least worthy"
        f" {100 * place['selected']:g}% never seen"
    )
    where = f"{place['bank']}, alpha {place['alpha']:g}"
    claim = f"A randomized bank earns more from rational customers ({where}; {labels})"
    measured = "utility per person less that of the deterministic bank, fresh roll-outs"
    yield Claim(claim, measured, earned - plain)
    yield Claim(f"... and more than nothing ({where})", "utility per person", earned)
    claim = f"... and gains more from them than if everybody applied ({where})"
    measured = "the gain by randomization less that with random customers"
    yield Claim(claim, measured, earned - everybody)
    claim = (
        "... and earns more than the best deterministic cut on the same forecasts, in hindsight"
        f" ({where})"
    )
    yield Claim(claim, "utility per person less that of the best cut", earned - best)
