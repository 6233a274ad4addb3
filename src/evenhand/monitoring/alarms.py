"""Alarms and notices of a watch, and the part of the allowed risk that each test has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Part = Literal["promise", "group", "draws"]

Direction = Literal["higher", "lower", "narrow", "wide", "extreme", "central", "gap"]

SHARES: dict[Part, float] = {"promise": 0.5, "group": 0.4, "draws": 0.1}
"""Share of each part in the probability of a false alarm, if a watch has all parts."""


@dataclass(frozen=True)
class Alarm:
    """Evidence that reached its threshold: a promise or tolerance is broken, or draws are not fair.

    Parameters
    ----------
    part : {"promise", "group", "draws"}
        What was tested: the promise for every group of a size, the tolerance of a named group, or
        whether draws are uniform.
    group : str or None
        Name of the group; None if all rows were tested.
    direction : {"higher", "lower", "narrow", "wide", "extreme", "central", "gap"}
        Outcomes higher or lower than forecast, forecasts too narrow or too wide; draws too high,
        too low, too often near 0 and 1 or near 1/2; PITs too far from their draws.
    date : str
        Start of the period in which the threshold was reached.
    since : str
        Start of the period from which on the evidence was largest: about when the change began.
    log_evidence : float
        Logarithm of the evidence when it reached the threshold.
    threshold : float
        Logarithm of the threshold.
    n_rows : int
        Number of rows of the group until then.
    """

    part: Part
    group: str | None
    direction: Direction
    date: str
    since: str
    log_evidence: float
    threshold: float
    n_rows: int


class Notice(Alarm):
    """Evidence of a change that breaks no promise, such as PITs outside the certified envelope."""


def risk_shares(false_alarm: float, parts: Iterable[Part]) -> dict[Part, float]:
    """Return the probability of a false alarm that each part of a watch may spend.

    Shares are fixed, and parts that are absent give theirs to the others in proportion. Then the
    sum is `false_alarm` whatever the rows are, and the bound of a union applies.

    Examples
    --------
    >>> {part: round(risk, 6) for part, risk in risk_shares(0.05, ["group", "draws"]).items()}
    {'group': 0.04, 'draws': 0.01}
    """
    present = [part for part in SHARES if part in set(parts)]
    total = sum(SHARES[part] for part in present)
    return {part: false_alarm * SHARES[part] / total for part in present}
