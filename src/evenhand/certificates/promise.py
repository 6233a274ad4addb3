"""What a certificate promises for every group of a size, in the form that a watch tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from evenhand._validate import read_state, typed_fields
from evenhand.calibration import CDFBand, CDFBands
from evenhand.links import Link, make_link
from evenhand.results import plain

Statistic = Literal["mean_pit", "gap", "bias"]

SHARES_OF_MASS = np.array([0.125, 0.25, 0.5, 1.0])
"""Tail probabilities, as shares of the group size, at which an envelope has bounds."""


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

    @classmethod
    def of(cls, bands: CDFBands, mass: float) -> Self:
        """Read bands where they bind the error of groups of a size: in tails of at most its share.

        Examples
        --------
        >>> envelope = Envelope.of(CDFBands.of_uniform(2000, 0.95), 0.2)
        >>> len(envelope.low), all(t < bound <= 0.2 for t, bound in envelope.low)
        (4, True)
        """
        return cls(*(_tails(band, mass) for band in (bands.upper, bands.mirrored)))


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
        Promised bound: group error from 0 to 1/2, gap from 0 to 1, bias from 0 to 1; the larger of
        both sides.
    confidence : float
        Confidence with which it was certified.
    link : Link or None
        The link; None unless the statistic is "mean_pit".
    envelope : Envelope or None
        Bounds of the certified distribution of base PITs; None if they are not known.
    atom : float or None
        Outcome beside which the promise holds: `mass` is then a share of the people with another
        outcome. None if it holds for all people.
    targets : tuple of (float, float) or None
        Bounds of the statistic and of its negative, from -1 to 1; None if both are `target`.
    """

    statistic: Statistic
    mass: float
    target: float
    confidence: float
    link: Link | None = None
    envelope: Envelope | None = None
    atom: float | None = None
    targets: tuple[float, float] | None = None

    @classmethod
    def of_bias(cls, low: float, high: float, mass: float, confidence: float) -> Self:
        """Return the promise that the bias of every group lies between two bounds.

        Examples
        --------
        >>> promise = Promise.of_bias(-0.354, 0.812, mass=0.2, confidence=0.95)
        >>> promise.target, promise.targets
        (0.812, (0.812, 0.354))
        """
        return cls("bias", mass, max(high, -low), confidence, targets=(high, -low))

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as JSON values."""
        link, envelope = self.link, self.envelope
        own = {"link": link and link.name, "alpha": link and link.alpha}
        values: dict[str, Any] = plain(vars(self) | own | {"envelope": envelope and vars(envelope)})
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a promise from the output of `to_dict`; InputError if it is anything else."""
        with read_state("Promise.to_dict"):
            names = ("statistic", "mass", "target", "confidence", "atom", "targets")
            given = typed_fields(cls, {name: values[name] for name in names})
            if (name := values["link"]) is not None:
                given["link"] = make_link(name, float(values["alpha"]))
            if (found := values["envelope"]) is not None:
                sides = {side: tuple(map(tuple, found[side])) for side in ("low", "high")}
                given["envelope"] = Envelope(**typed_fields(Envelope, sides))
            return cls(**given)


def _tails(band: CDFBand, mass: float) -> tuple[tuple[float, float], ...]:
    """Return the largest t, each with its bound, at which a band is at most a share of the mass."""
    steps = np.unique(np.searchsorted(band.upper, mass * SHARES_OF_MASS, side="right")) - 1
    steps = steps[(steps >= 0) & (steps < band.upper.size - 1)]
    # the band is constant from one start to just below the next one
    ends = np.nextafter(band.starts[steps + 1], 0.0)
    pairs = zip(ends.tolist(), band.upper[steps].tolist(), strict=True)
    return tuple((t, bound) for t, bound in pairs if t > 0)
