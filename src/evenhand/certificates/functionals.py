"""Values per person that certificates bound, and the cells for which each bound is proven."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, InputError
from evenhand.calibration import (
    Cells,
    Reading,
    SurvivalBand,
    betting_cvar,
    cell_excess,
    covered_whole,
    local_levels_band,
    pathwise_errors,
)

WORST = 0.5
"""Largest possible W1 error."""

# --- what each bound is proven for (method: 12)


class Proof(NamedTuple):
    """Cells for which a bound is proven.

    Parameters
    ----------
    readings : set of Reading
        Readings of the cells. Points are "averaged".
    has_link : bool
        Whether cells are those before the draw of a link, or served ones.
    has_widths : bool
        Whether averaged cells may have a width.
    has_counts : bool
        Whether rows may stand for several people.
    why : str
        Why the bound is not proven for other cells.
    """

    readings: frozenset[Reading]
    has_link: bool
    has_widths: bool
    has_counts: bool
    why: str


ALL = frozenset(Reading)
KNOWN = frozenset({Reading.AVERAGED, Reading.UNKNOWN})

PROVEN = {
    "norm": Proof(
        ALL, False, True, True, "before the draw of a link, widths and draws are not independent"
    ),
    "norm under a link": Proof(
        ALL, True, False, True, "the error of an averaged position under a link needs its draws"
    ),
    "ordered": Proof(
        KNOWN,
        True,
        False,
        True,
        "profiles are in one order only if the completed PIT does not depend on the draw",
    ),
    "lattice": Proof(
        frozenset({Reading.AVERAGED}),
        True,
        True,
        False,
        "both positions of a person lie in one served cell, which needs the person's own draws",
    ),
    "coverage": Proof(ALL, False, True, True, "coverage is that of served intervals"),
    "gap": Proof(ALL, False, True, False, "gaps are distances of served PITs from their draws"),
}
"""Cells for which each bound is proven, by the name of the bound."""


def refusal(bound: str, cells: Cells) -> str | None:
    """Return why a bound is not proven for these cells; None if it is.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> refusal("ordered", Cells([0.2], [0.4], link=Entropic(0.1)))
    "the bound 'ordered' is not proven for these cells (averaged, under a link, with widths): \
profiles are in one order only if the completed PIT does not depend on the draw"
    """
    proof = PROVEN[bound]
    readings = [Reading(int(one)) for one in np.unique(cells.reading)]
    widths = (cells.high > cells.low)[cells.averaged].any()
    is_proven = (
        proof.readings.issuperset(readings)
        and proof.has_link == (cells.link is not None)
        and (proof.has_widths or not widths)
        and (proof.has_counts or cells.count is None)
    )
    if is_proven:
        return None
    found = [one.name.lower() for one in readings]
    found.append("served" if cells.link is None else "under a link")
    found += ["with widths"] if widths else []
    found += ["with counts"] if cells.count is not None else []
    return f"the bound {bound!r} is not proven for these cells ({', '.join(found)}): {proof.why}"


def check_proven(bound: str, cells: Cells) -> None:
    """Raise InputError unless a bound is proven for these cells."""
    why = refusal(bound, cells)
    if why is not None:
        raise InputError(why)


# --- values per person


class Values(NamedTuple):
    """A value per person, known up to an interval, with the number of people of each row.

    Parameters
    ----------
    low, high : ndarray of shape (k,)
        Ends between which the values lie; one array twice if they are known.
    people : ndarray of int, shape (k,), optional
        Number of people with each value; one by default.
    """

    low: Floats
    high: Floats
    people: NDArray[np.int64] | None = None

    @classmethod
    def known(cls, values: Floats, people: NDArray[np.int64] | None = None) -> Values:
        """Return values that are known."""
        return cls(values, values, people)

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.high.size if self.people is None else int(self.people.sum())

    def complement(self, top: float = 1.0) -> Values:
        """Return the largest possible value minus each value."""
        return Values(top - self.high, top - self.low, self.people)

    def band(self, top: float, confidence: float) -> SurvivalBand:
        """Return an upper band for the distribution of the values, which are at most `top`."""
        return local_levels_band(self.high, top, confidence, self.people)

    def worst_mean(
        self, mass: float, top: float, confidence: float, seed: int | None = None
    ) -> float:
        """Return an upper bound for the mean of the worst `mass`; with a `seed` by betting."""
        if seed is not None:
            # a bound for a single mean, without a band
            return betting_cvar(self.high, mass, top, confidence, seed)
        return self.band(top, confidence).cvar(mass)

    def n_at_least(self, threshold: float) -> int:
        """Return the number of people whose value may be at least `threshold`."""
        hits = self.high >= threshold
        return int(hits.sum() if self.people is None else self.people[hits].sum())


def norm(cells: Cells) -> Values:
    """Return each person's pathwise error, the norm of the profile minus uniform (method: 12).

    An averaged position counts by the profile that is averaged over it, an unknown one by the worst
    profile, and a person beyond the horizon by the best. The rows of cells are those of served
    forecasts, over draws, or with a link those before the draw.
    """
    check_proven("norm" if cells.link is None else "norm under a link", cells)
    unknown, beyond, known = cells.unknown, cells.beyond, cells.averaged
    errors = np.full(cells.n_samples, WORST)
    if known.all():
        errors = _errors(cells)
    elif known.any():
        errors[known] = _errors(cells.take(known))
    if beyond.any():
        low = cells.low[beyond]
        errors[beyond] = (
            cell_excess(1 - low) if cells.link is None else cells.link.cell_error(low[:, 0])
        )
    if unknown.any() and cells.n_draws == 1:
        # the error of one forecast, and that under a link, is largest at an end
        ends = (Cells(end[unknown], link=cells.link) for end in (cells.low, cells.high))
        errors[unknown] = np.maximum(*map(_errors, ends))
    return Values.known(errors, cells.count)


def _errors(cells: Cells) -> Floats:
    """Return pathwise errors of averaged cells."""
    if cells.link is None:
        return pathwise_errors(cells)
    return cells.link.pathwise_error(cells.low[:, 0])


def missed(cells: Cells, level: float) -> Values:
    """Return the least and the largest share of draws whose central interval misses the outcome.

    An interval covers a whole outcome, and an outcome beyond the horizon, if it reaches into the
    cell. Wherever an unknown outcome is, it is covered if both ends are.
    """
    check_proven("coverage", cells)
    share = 1 - covered_whole(cells, level)
    if not cells.unknown.any():
        return Values.known(share, cells.count)
    # (1 - 0.98) / 2 is above the edge 0.01 of a bin of counts in the last digit
    ends = np.round(((1 - level) / 2, (1 + level) / 2), 12)
    inside = (cells.low >= ends[0]) & (cells.high <= ends[1])
    return Values(
        np.where(cells.unknown, 0.0, share),
        np.where(cells.unknown, 1 - inside.mean(axis=-1), share),
        cells.count,
    )


def gap(cells: Cells, column: NDArray[np.intp]) -> Values | None:
    """Return the largest `|h[x, r](y) - r|` of one draw per person, in given columns.

    None if the draws are not known. A person beyond the horizon is off only if the lower end is
    above the draw.
    """
    check_proven("gap", cells)
    if cells.draws is None:
        return None
    place = np.arange(cells.n_samples), column
    r, low, high = cells.draws[place], cells.low[place], cells.high[place]
    found = np.abs(cells.drawn[place] - r)
    found = np.where(cells.beyond, np.maximum(low - r, 0.0), found)
    worst = np.maximum(np.abs(low - r), np.abs(high - r))
    return Values.known(np.where(cells.unknown, worst, found))
