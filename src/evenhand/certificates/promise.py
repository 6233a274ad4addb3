"""What a certificate promises for every group of a size, in the form that a watch tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from evenhand._validate import InputError
from evenhand.links import Link, make_link

Statistic = Literal["mean_pit", "gap", "bias"]


@dataclass(frozen=True)
class Envelope:
    """Bounds of a certified distribution of PITs, at few PITs (outcomes: 6).

    Parameters
    ----------
    low : tuple of (float, float)
        Pairs `(t, bound)` with `P(U <= t) <= bound`.
    high : tuple of (float, float)
        Pairs `(t, bound)` with `P(U >= 1 - t) <= bound`.
    """

    low: tuple[tuple[float, float], ...] = ()
    high: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Promise:
    """Bound for every group of at least a size, and the statistic whose means it bounds.

    Parameters
    ----------
    statistic : {"mean_pit", "gap", "bias"}
        Value per person whose mean over any group is at most `target`. "mean_pit": the mean served
        PIT minus 1/2, and its negative, of forecasts through a known link (method: sharp
        certificate, Theorem 1). "gap": `|PIT - draw|` where the link is unknown. "bias": outcome
        minus probability, and its negative, for 0/1 outcomes.
    mass : float
        Smallest share of people in a group, 0 < mass <= 1.
    target : float
        Promised bound: group error from 0 to 1/2, gap from 0 to 1, bias from 0 to 1.
    confidence : float
        Confidence with which it was certified.
    link : Link or None
        The link; None unless the statistic is "mean_pit".
    envelope : Envelope or None
        Bounds of the certified distribution of base PITs; None if they are not known.
    """

    statistic: Statistic
    mass: float
    target: float
    confidence: float
    link: Link | None = None
    envelope: Envelope | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as JSON values."""
        envelope = self.envelope
        return {
            "statistic": self.statistic,
            "mass": self.mass,
            "target": self.target,
            "confidence": self.confidence,
            "link": None if self.link is None else self.link.name,
            "alpha": None if self.link is None else self.link.alpha,
            "envelope": None
            if envelope is None
            else {"low": [*map(list, envelope.low)], "high": [*map(list, envelope.high)]},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a promise from the output of `to_dict`; InputError if it is anything else."""
        try:
            link = values["link"]
            found = values["envelope"]
            envelope = None
            if found is not None:
                low, high = (
                    tuple((float(t), float(bound)) for t, bound in found[side])
                    for side in ("low", "high")
                )
                envelope = Envelope(low, high)
            return cls(
                values["statistic"],
                float(values["mass"]),
                float(values["target"]),
                float(values["confidence"]),
                None if link is None else make_link(link, float(values["alpha"])),
                envelope,
            )
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"promise is not the output of Promise.to_dict ({reason})") from error
