"""What the paper says of the lending game, claim by claim, and where randomization pays, with our numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.studies.credit_world import SHARE_UNQUALIFIED
from evenhand.studies.verdicts import NEGLIGIBLE, Claim, interval, judged

PAIC = 0.1
LIKELIHOOD = 1.0
"""The alphas that the paper compares: nearly all weight on individual calibration, and none."""

CELL = ["bank", "wrong", "selected"]


def claims(rows: pd.DataFrame) -> pd.DataFrame:
    """Every claim as a row: what is claimed, what was measured, its 95% interval over roll-outs, and its verdict.

    Parameters
    ----------
    rows : DataFrame
        What `one_rollout` measures, with `seed`.
    """
    return judged(_measured(rows[rows["share_unqualified"] == SHARE_UNQUALIFIED]))


def _measured(rows: pd.DataFrame) -> Iterator[Claim]:
    small = f"alpha {PAIC:g}"
    large = f"alpha {LIKELIHOOD:g}"
    for recalibrated, how in ((True, ", recalibrated"), (False, "")):

        def more(column: str, own: bool = recalibrated) -> Floats:
            """What the smaller alpha has more than the larger one, by roll-out."""
            return _of(rows, column, PAIC, own) - _of(rows, column, LIKELIHOOD, own)

        claim = f"With random customers the individually calibrated bank earns less{how}"
        yield (
            claim,
            f"utility per person at {small} less that at {large}",
            more("utility_random"),
            0.0,
            False,
        )
        claim = f"With rational customers it earns more{how}"
        for who, which in (
            ("learning", "who learned from earlier ones"),
            ("informed", "who know the bank"),
        ):
            for column, unit in (("utility", "person"), ("per_applicant", "applicant")):
                measured = f"utility per {unit} at {small} less that at {large}, customers {which}"
                yield claim, measured, more(f"{column}_{who}"), 0.0, True
        claim = f"It has fewer exploitative customers{how}"
        for who, which in (
            ("learning", "who learned from earlier ones"),
            ("informed", "who know the bank"),
        ):
            measured = (
                f"share of people, {which}, who are unqualified and apply: {small} less {large}"
            )
            yield claim, measured, more(f"exploiting_{who}"), 0.0, False
        claim = (
            f"Of the people it says yes to at most 25% are unqualified, {small}, random"
            f" customers{how}"
        )
        yield (
            claim,
            "share of its yes",
            _of(rows, "bad_share_of_yes", PAIC, recalibrated),
            0.25,
            False,
        )
    for alpha in (PAIC, LIKELIHOOD):
        before, after = (_of(rows, "worst_error", alpha, own) for own in (False, True))
        claim = f"Recalibration does not improve adversarial groups, alpha {alpha:g}"
        yield (
            claim,
            f"worst fifth: error before less after, {NEGLIGIBLE:g} at most",
            before - after,
            NEGLIGIBLE,
            False,
        )


def _of(rows: pd.DataFrame, column: str, alpha: float, recalibrated: bool) -> Floats:
    own = rows[(rows["alpha"] == alpha) & (rows["recalibrated"] == recalibrated)].sort_values(
        "seed"
    )
    return own[column].to_numpy(dtype=np.float64)


def advantages(cells: pd.DataFrame) -> pd.DataFrame:
    """What each randomized bank earns more than a deterministic one with the same forecasts, from who knows them.

    Parameters
    ----------
    cells : DataFrame
        What `one_cell` measures, with `seed`, `wrong` and `selected`.

    Returns
    -------
    DataFrame
        A row per bank, cell and alpha below 1: `more` with `low` and `high`, 95% t intervals over
        roll-outs; what both `earned`; the shares of unqualified people among those whom the
        deterministic bank says yes to, and among those of them for whom the randomized one is no
        longer worth it to the qualified; the certificates of both.
    """
    table = []
    randomized = cells[cells["alpha"] < 1]
    for place, own in randomized.groupby([*CELL, "alpha"], sort=False):
        gains, plain = (
            own[name].to_numpy(dtype=np.float64) for name in ("utility_informed", "utility_plain")
        )
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


def settled(found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Of each kind of bank the cell and alpha to confirm.

    Surest to earn more, of those that earn anything at all.

    A bank that stays closed earns 0: to earn more than a bank that loses money is no art.
    """
    chosen = {}
    for bank, own in found.groupby("bank", sort=False):
        earning = own[own["earned"] > 0] if (own["earned"] > 0).any() else own
        sure = earning["low"].fillna(earning["more"])
        best = earning.iloc[int(sure.to_numpy(dtype=np.float64).argmax())]
        chosen[str(bank)] = {name: float(best[name]) for name in ("wrong", "selected", "alpha")}
    return chosen


def confirmed(cells: pd.DataFrame) -> pd.DataFrame:
    """The settled cells on fresh roll-outs.

    That randomization earns more there, and how that comes about.

    Parameters
    ----------
    cells : DataFrame
        What `one_cell` measures in the settled cells, with `seed`, `wrong` and `selected`.
    """
    return judged(
        claim for _, own in cells.groupby([*CELL, "alpha"], sort=False) for claim in _of_cell(own)
    )


def _of_cell(own: pd.DataFrame) -> Iterator[Claim]:
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
    yield (
        claim,
        "utility per person less that of the deterministic bank, fresh roll-outs",
        earned - plain,
        0.0,
        True,
    )
    yield f"... and more than nothing ({where})", "utility per person", earned, 0.0, True
    claim = f"... and gains more from them than if everybody applied ({where})"
    yield (
        claim,
        "the gain by randomization less that with random customers",
        earned - everybody,
        0.0,
        True,
    )
    claim = (
        "... and earns more than the best deterministic cut on the same forecasts, in hindsight"
        f" ({where})"
    )
    yield claim, "utility per person less that of the best cut", earned - best, 0.0, True
