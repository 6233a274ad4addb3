"""Links around the continuous part of forecasts with an atom at an end (outcomes: 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand._format import count
from evenhand._validate import Floats, InputError, about
from evenhand.audits import spread_step
from evenhand.calibration import Cells, CensoredTimes, Reading
from evenhand.certificates import certify_hurdle
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.selection.chosen_link import (
    MOST_PRICED,
    PRICE_DRAWS,
    ChosenLink,
    Costs,
    Widths,
    certified,
    plain_interval,
)
from evenhand.selection.rows import SplitRows, least_price
from evenhand.selection.target import Target

LEAST_ROWS = 20
"""Fewest certifying outcomes besides the atom."""


@dataclass(frozen=True, eq=False)
class HurdleCosts:
    """Costs of links around the continuous part, as means over all people.

    Parameters
    ----------
    inside : Costs
        Costs for the people whose outcome is not the atom.
    widths : Widths
        Widths of the intervals of the whole forecasts.
    share : float
        Share of the people whose outcome is not the atom.
    """

    inside: Costs
    widths: Widths
    share: float

    def price(self, link: Link) -> float:
        """Return the mean loss of log score through a link, in nats."""
        # the probability of the atom is not randomized: the score of these people does not change
        return self.share * self.inside.price(link)

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""
        return self.widths.wider(link)


def atom_of(base: Forecast) -> float | None:
    """Return the value of the atom of forecasts with a continuous part; None for other kinds."""
    is_hurdle = base.outcome_kind is OutcomeKind.HURDLE
    return as_hurdle(base.distribution).at if is_hurdle else None


def hurdle_choice(
    base: Forecast,
    y: Floats,
    family: Link,
    target: Target,
    rows: SplitRows,
    random: np.random.Generator,
) -> ChosenLink:
    """Choose a link around the continuous part of a forecast with an atom at an end.

    The link and its certificate are those of the PITs of the continuous part on the rows whose
    outcome is not the atom. People are a sample of such people there, so bounds for groups of a
    share of *them* are those of a continuous outcome, and the link may be chosen on the same rows.
    """
    atom = as_hurdle(base.distribution).at
    off_atom = y != atom
    n = int(off_atom.sum())
    if n < LEAST_ROWS:
        raise InputError(
            f"{count(n, 'certifying row has', 'certifying rows have')} an outcome other than"
            f" {atom:g}, and at least {LEAST_ROWS} are needed; use more rows"
        )
    part = base[off_atom].positive_part()
    amounts = y[off_atom]
    step = spread_step(amounts)
    pit = part.pit(amounts, step=step, random_state=random)
    inside = Costs(part, pit, amounts, None, random)
    costs = HurdleCosts(inside, Widths(base, random), n / y.size)
    # a number of rows in a message is one of such rows: all rows, with the atom, are more
    with about(f"outcomes other than {atom:g}"):
        proof = certified(pit, costs, family, target, replace(rows, share=None))
    link = proof.link
    pits, served = served_pits(base, y, pit, link, random)
    certificate = certify_hurdle(
        pits,
        served,
        off_atom,
        base.event_probability(),
        at=atom,
        confidence=target.confidence,
        random_state=random,
    )
    return ChosenLink(
        link,
        certificate.accounting_for(proof),
        costs.price(link),
        costs.share * least_price(proof.mean_error()),
        costs.wider(link) if costs.widths.is_positive else np.nan,
        (pits.low, pits.high),
        Cells.between(*base.pit_interval(y), fresh(y.size, random)),
        costs,
        lambda link: proof.with_link(link).group_error(target.group_mass),
        plain_interval(proof, inside, inside.wider(link), target),
    )


def served_pits(
    base: Forecast,
    y: Floats,
    pit: Floats,
    link: Link,
    random: np.random.Generator,
    times: CensoredTimes | None = None,
) -> tuple[Cells, Cells]:
    """Return PITs of the randomized forecasts of all people, and those of their continuous part.

    `pit` are those of the continuous part without a draw, of the people whose outcome is not the
    atom; so are the second ones. Outcomes may be `times` that are cut off.
    """
    hurdle = as_hurdle(base.distribution)
    off_atom = y != hurdle.at
    n_draws = int(np.clip(MOST_PRICED // y.size, 1, PRICE_DRAWS))
    draws = jittered(y.size, n_draws, random)
    # the cell of the atom does not depend on the draw
    low, high = (np.repeat(end[:, None], n_draws, axis=1) for end in base.pit_interval(y))
    chance = base.event_probability()[off_atom, None]
    below = 1 - chance if hurdle.end == "low" else 0.0
    part = Cells(link.ppf(pit[:, None], draws[off_atom]), draws=draws[off_atom])
    low[off_atom] = high[off_atom] = below + chance * part.drawn
    reading = None
    if times is not None:
        high[times.is_lost] = 1.0
        reading = times.is_lost * Reading.UNKNOWN
    ties = fresh(y.size, random)
    return Cells.between(low, high, ties, draws=draws, reading=reading), part
