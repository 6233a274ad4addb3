"""What the paper says of the lending game, claim by claim, and where randomization pays, with our numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evenhand._checks import Floats
from evenhand.experiments._credit_world import SHARE_UNQUALIFIED
from evenhand.experiments._verdicts import Claim, interval, judged

PAIC, LIKELIHOOD = 0.1, 1.0
"""The alphas that are compared: nearly all weight on individual calibration, and none."""

NEGLIGIBLE = 0.02
"""An improvement of the worst fifth by less than this counts as none, as in the crime study."""

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
    small, large = f"alpha {PAIC:g}", f"alpha {LIKELIHOOD:g}"
    for recalibrated, how in ((True, ", recalibrated"), (False, "")):

        def more(column: str, own: bool = recalibrated) -> Floats:
            """What the smaller alpha has more than the larger one, by roll-out."""
            return _of(rows, column, PAIC, own) - _of(rows, column, LIKELIHOOD, own)

        claim = f"With random customers the individually calibrated bank earns less{how}"
        yield claim, f"utility per person at {small} less that at {large}", more("utility_random"), 0.0, False
        claim = f"With rational customers it earns more{how}"
        measured = f"the same difference, customers who learned from {{}}, per {{}}, {small} less {large}"
        for who, source in (("learning", "earlier ones"), ("informed", "the bank itself")):
            yield claim, measured.format(source, "person"), more(f"utility_{who}"), 0.0, True
            yield claim, measured.format(source, "applicant"), more(f"per_applicant_{who}"), 0.0, True
        claim = f"It has fewer exploitative customers{how}"
        for who, source in (("learning", "learned"), ("informed", "know the bank")):
            measured = f"share of people who are unqualified and apply, as they {source}: {small} less {large}"
            yield claim, measured, more(f"exploiting_{who}"), 0.0, False
        claim = f"Of the people it says yes to at most 25% are unqualified, {small}, random customers{how}"
        yield claim, "share of its yes", _of(rows, "bad_share_of_yes", PAIC, recalibrated), 0.25, False
    for alpha in (PAIC, LIKELIHOOD):
        before, after = (_of(rows, "worst_error", alpha, own) for own in (False, True))
        claim = f"Recalibration does not improve adversarial groups, alpha {alpha:g}"
        yield claim, f"worst fifth: error before less after, {NEGLIGIBLE:g} at most", before - after, NEGLIGIBLE, False


def _of(rows: pd.DataFrame, column: str, alpha: float, recalibrated: bool) -> Floats:
    own = rows[(rows["alpha"] == alpha) & (rows["recalibrated"] == recalibrated)].sort_values("seed")
    return own[column].to_numpy(dtype=np.float64)


def advantages(cells: pd.DataFrame) -> pd.DataFrame:
    """What each randomized bank earns more than the deterministic one of its cell, from customers who know it.

    Parameters
    ----------
    cells : DataFrame
        What `one_cell` measures, with `seed`, `wrong` and `selected`.

    Returns
    -------
    DataFrame
        A row per bank, cell and alpha below 1: `more` with `low` and `high`, 95% t intervals over roll-outs, both
        `earned` and `deterministic`, and the certificates of both.
    """
    table = []
    for place, own in cells.groupby(CELL, sort=False):
        plain = own[own["alpha"] == LIKELIHOOD].sort_values("seed")
        for alpha, part in own[own["alpha"] != LIKELIHOOD].groupby("alpha"):
            part = part.sort_values("seed")
            gains = part["utility_informed"].to_numpy(dtype=np.float64)
            more, low, high = interval(gains - plain["utility_informed"].to_numpy(dtype=np.float64))
            row: dict[str, Any] = dict(zip(CELL, place, strict=True)) | {"alpha": alpha}
            row |= {"deterministic": plain["utility_informed"].mean(), "earned": gains.mean()}
            row |= {"more": more, "low": low, "high": high}
            row |= {"unqualified among its yes": plain["bad_share_of_yes"].mean()}
            for name, of in (("deterministic", plain), ("randomized", part)):
                row[f"certified average, {name}"] = of["certified_average"].mean()
                row[f"certified every fifth, {name}"] = of["certified_error"].mean()
            table.append(row)
    return pd.DataFrame(table)


def settled(found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Of each kind of bank the cell and alpha to confirm: surest to earn more, of those that earn anything at all.

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
    """The settled cells on fresh roll-outs: the claim that randomization earns more there, and its parts.

    Parameters
    ----------
    cells : DataFrame
        What `one_cell` measures in the settled cells, with `seed`, `wrong` and `selected`.
    """
    parts = []
    for (bank, wrong, selected), own in cells.groupby(CELL, sort=False):
        alphas = sorted(own["alpha"].unique())
        values = {
            alpha: own[own["alpha"] == alpha].sort_values("seed")["utility_informed"].to_numpy(dtype=np.float64)
            for alpha in alphas
        }
        missing = f"least worthy {100 * float(str(selected)):g}% never seen"
        where = f"{bank}, labels of the young {wrong:g} sd too high, {missing}"
        claim = f"A randomized bank earns more from rational customers ({where})"
        measured = f"utility per person at alpha {alphas[0]:g} less that at {alphas[-1]:g}, fresh roll-outs"
        parts.append((claim, measured, values[alphas[0]] - values[alphas[-1]], 0.0, True))
        parts.append((f"... and more than nothing ({bank})", "its utility per person", values[alphas[0]], 0.0, True))
    return judged(parts)
