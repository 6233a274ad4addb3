"""Claims of the paper about the lending game, and choice of the cells where randomization pays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from reproduction.credit_people import SHARE_UNQUALIFIED
from reproduction.sweep import LIKELIHOOD, PAIC, recalibration_claim, values_at
from reproduction.verdicts import Claim, interval, judge

CELL = ["bank", "wrong", "selected"]

RATIONAL = {"learning": "who learned from earlier customers", "informed": "who know the bank"}
"""Kinds of rational customers."""


def credit_claims_of(rows: pd.DataFrame) -> list[Claim]:
    """Return the paper's claims about the game.

    Parameters
    ----------
    rows : DataFrame
        Measures of `measure_rollout`, with `seed`.
    """
    # the threshold of the figures; other thresholds have their own table
    drawn = rows[rows["share_unqualified"] == SHARE_UNQUALIFIED]
    return [
        *_claims_of_alphas(drawn, True, ", recalibrated"),
        *_claims_of_alphas(drawn, False, ""),
        *(recalibration_claim(drawn, alpha) for alpha in (PAIC, LIKELIHOOD)),
    ]


def _claims_of_alphas(rows: pd.DataFrame, recalibrated: bool, how: str) -> Iterator[Claim]:
    """Yield claims that compare banks at two alphas, as trained or recalibrated."""
    small = f"alpha {PAIC:g}"
    large = f"alpha {LIKELIHOOD:g}"

    def more(column: str) -> Floats:
        """Return the measure at the smaller alpha minus that at the larger, by roll-out."""
        at_paic = values_at(rows, column, PAIC, recalibrated)
        return at_paic - values_at(rows, column, LIKELIHOOD, recalibrated)

    claim = f"With random customers the individually calibrated bank earns less{how}"
    measured = f"utility per person at {small} minus that at {large}"
    yield Claim(claim, measured, more("utility_random"), is_above=False)
    claim = f"With rational customers it earns more{how}"
    for who, which in RATIONAL.items():
        for column, unit in (("utility", "person"), ("per_applicant", "applicant")):
            measured = f"utility per {unit} at {small} minus that at {large}, customers {which}"
            values = more(f"{column}_{who}")
            yield Claim(claim, measured, values, is_headline=column == "utility")
    claim = f"It has fewer exploitative customers{how}"
    for who, which in RATIONAL.items():
        measured = (
            f"share of people who are unqualified and apply, customers {which}: {small} minus"
            f" {large}"
        )
        yield Claim(claim, measured, more(f"exploiting_{who}"), is_above=False)
    claim = f"At most 25% of the people it approves are unqualified, {small}, random customers{how}"
    share = values_at(rows, "bad_share_of_yes", PAIC, recalibrated)
    yield Claim(claim, "unqualified share of approvals", share, 0.25, is_above=False)


def advantages(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the gain of each randomized bank over a deterministic bank with the same forecasts.

    Customers know the bank in both cases.

    Parameters
    ----------
    cells : DataFrame
        Measures of `measure_cell`, with `seed`, `wrong` and `selected`.

    Returns
    -------
    DataFrame
        One row per bank, cell and alpha below 1: the gain `more` with its 95% t interval over
        roll-outs; `earned` and `deterministic`, the earnings of both banks; the share of
        unqualified people among those whom the deterministic bank approves, and among those of
        them to whom the randomized bank is no longer attractive if qualified; the certificates of
        both.
    """
    table = []
    randomized = cells[cells["alpha"] < 1]
    for place, own in randomized.groupby([*CELL, "alpha"], sort=False):
        gains, plain = (
            own[name].to_numpy(dtype=np.float64) for name in ("utility_informed", "utility_plain")
        )
        # paired by roll-out: both banks have the same customers
        more, low, high = interval(gains - plain)
        row: dict[str, Any] = dict(zip([*CELL, "alpha"], place, strict=True))
        row |= {
            "more": more,
            "low": low,
            "high": high,
            "earned": gains.mean(),
            "deterministic": plain.mean(),
        }
        row |= {"unqualified among approved": own["plain_bad_share"].mean()}
        row |= {"unqualified among deterred": own["shut_out_bad_share"].mean()}
        row |= {"certified every fifth": own["certified_error"].mean()}
        row |= {"certified average": own["certified_average"].mean()}
        table.append(
            row | {"certified average, deterministic": own["plain_certified_average"].mean()}
        )
    return pd.DataFrame(table)


def choose_cells(found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Choose the cell and alpha to confirm for each kind of bank: the largest lower end of gains.

    Only cells with positive earnings are considered, because even a closed bank, which earns 0,
    gains over a bank that loses money.
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
    """Decide on new roll-outs whether, and why, randomization earns more in the chosen cells.

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
        f"labels of young people {place['wrong']:g} sd too high, no labels of the least worthy"
        f" {100 * place['selected']:g}%"
    )
    where = f"{place['bank']}, alpha {place['alpha']:g}"
    claim = f"A randomized bank earns more from rational customers ({where}; {labels})"
    measured = "utility per person minus that of the deterministic bank, new roll-outs"
    yield Claim(claim, measured, earned - plain)
    yield Claim(f"... and its earnings are positive ({where})", "utility per person", earned)
    claim = f"... and randomization gains more with them than if everybody applied ({where})"
    measured = "gain by randomization minus the same with random customers"
    yield Claim(claim, measured, earned - everybody)
    claim = (
        "... and earns more than the oracle cut on the same forecasts, the best deterministic one"
        f" ({where})"
    )
    yield Claim(claim, "utility per person minus that of the oracle cut", earned - best)
