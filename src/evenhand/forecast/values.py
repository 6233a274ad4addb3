"""Values of forecasts per person: probabilities, quantiles, moments, PITs and scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import one_line
from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, InputError, bad_input, check_finite, check_fraction
from evenhand.distributions import Distribution, Hurdle, OutcomeKind, as_hurdle
from evenhand.draws import RandomState, fresh, generator


@dataclass(frozen=True, eq=False, repr=False)
class ForecastValues:
    """What can be computed from predicted distributions, without making other forecasts.

    The attributes are those of `Forecast`.
    """

    distribution: Distribution
    r: Floats | None = None

    def __post_init__(self) -> None:
        shape = self.distribution.batch_shape
        if len(shape) not in (1, 2) or shape[0] == 0:
            raise bad_input(
                "distribution", "be a batch of shape (n,) or (n, m), n >= 1", f"shape {shape}"
            )
        if self.r is None and len(shape) == 2:
            raise InputError(
                f"r is None, but a batch of shape {shape} has several draws per person; give the"
                " draws"
            )
        # draws of shape (1, m) are shared by all people
        shared = (1, *shape[1:]) if len(shape) == 2 else shape
        if self.r is not None and self.r.shape not in (shape, shared):
            raise bad_input("r", f"have the shape of the batch, {shape}", f"shape {self.r.shape}")

    def __repr__(self) -> str:
        return one_line(
            self,
            distribution=type(self.distribution).__name__,
            n_samples=self.n_samples,
            n_draws=(
                self.distribution.batch_shape[-1]
                if self.r is not None and self.r.ndim == 2
                else None
            ),
            is_randomized=self.is_randomized,
        )

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the forecast describes: continuous, count, hurdle or binary."""
        return self.distribution.outcome_kind

    @property
    def has_atoms(self) -> bool:
        """Whether single outcomes have positive probability."""
        return self.distribution.has_atoms

    def event_probability(self) -> Floats:
        """Probability of the event, shape of the batch.

        The event is the outcome 1 of a 0/1 forecast, and an outcome that is not at the atom of a
        hurdle forecast.

        Raises
        ------
        InputError
            If the forecast is of another kind.
        """
        if self.outcome_kind is OutcomeKind.BINARY:
            return self._of_batch(self.distribution.sf(0.0))
        hurdle = self._hurdle("event_probability")
        return self._of_batch(1 - hurdle.chance)

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.distribution.batch_shape[0]

    @property
    def is_randomized(self) -> bool:
        """Whether the distributions depend on a draw."""
        return self.r is not None

    def __len__(self) -> int:
        return self.n_samples

    def cdf(self, y: ArrayLike) -> Floats:
        """CDF at `y`, a number or one value per person; shape of the batch."""
        return self.distribution.cdf(self._per_person(y))

    def cdf_left(self, y: ArrayLike) -> Floats:
        """`P(Y < y)` at a number or one value per person; shape of the batch."""
        return self.distribution.cdf_left(self._per_person(y))

    def log_mass(self, y: ArrayLike) -> Floats:
        """`log P(Y = y)` at a number or one value per person; `-inf` where there is no atom."""
        return self.distribution.log_mass(self._per_person(y))

    def log_density(self, y: ArrayLike) -> Floats:
        """Log score at `y`, a number or one value per person, in nats; shape of the batch.

        The log probability of `y` where it has one, otherwise its log density.
        """
        values = self._per_person(y)
        if not self.has_atoms:
            return self.distribution.logpdf(values)
        mass = self.distribution.log_mass(values)
        return np.where(np.isneginf(mass), self.distribution.logpdf(values), mass)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density at `y`, a number or one value per person, in nats; shape of the batch."""
        return self.distribution.logpdf(self._per_person(y))

    def crps(self, y: ArrayLike) -> Floats:
        """CRPS at `y`, a number or one value per person, in units of `y`; shape of the batch."""
        return self.distribution.crps(self._per_person(y))

    def pit_interval(
        self,
        y: ArrayLike,
        *,
        upper: ArrayLike | None = None,
        step: float | None = None,
        span: tuple[float, float] | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the cells of the PITs: the CDF just before and at the outcomes (outcomes: 2).

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes, or lower ends of what is known of them.
        upper : array-like of shape (n,), optional
            Upper ends of what is known of the outcomes, at least `y`: infinite for a time that is
            cut off (outcomes: 5). Of its PIT no more is known than the interval.
        step : float, optional
            Rounding step of the outcomes of a continuous forecast: the cells are then those between
            the CDF values at `y -+ step / 2`.
        span : tuple of two floats, optional
            Least and greatest possible outcome, whose rounding cells are open.

        Returns
        -------
        low, high : ndarray of shape (n,) or (n, m)
            Ends of the cells; equal where the outcome has no positive probability.
        """
        if step is None:
            values = self._per_person(y)
            high = self.distribution.cdf(self._ends_above(values, upper))
            if not self.has_atoms:
                return (high, high) if upper is None else (self.distribution.cdf(values), high)
            # between atoms both are equal up to rounding
            return np.minimum(self.distribution.cdf_left(values), high), high
        low, high = (self.distribution.cdf(end) for end in self._rounding_cells(y, step, span))
        return low, high

    def pit(
        self,
        y: ArrayLike,
        *,
        ties: ArrayLike | None = None,
        step: float | None = None,
        span: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ) -> Floats:
        """Return the probability integral transforms (PITs), the CDF at the outcomes.

        Where outcomes have cells (`pit_interval`), the PIT is uniform in the cell: at the share
        `ties` of it, one per person for all of the person's draws.

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        ties : array-like of shape (n,), optional
            Position in the cell, strictly between 0 and 1, uniform and independent of the draws;
            see `KeyedDraws.ties`. Needed if the forecast has atoms.
        step : float, optional
            Rounding step of the outcomes of a continuous forecast.
        span : tuple of two floats, optional
            Least and greatest possible outcome, whose rounding cells are open.
        random_state : int, generator or None
            Seed for the positions in rounding cells, if `ties` is None.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            Rows are people, columns are draws.

        Raises
        ------
        InputError
            If the forecast has atoms and there are no `ties`.
        """
        if ties is None and self.has_atoms:
            raise InputError(
                "ties is None, but outcomes of this forecast have positive probability, and their"
                " PITs are intervals; pass one uniform number per person (KeyedDraws.ties), or use"
                " pit_interval"
            )
        if ties is None and step is None:
            return self.cdf(y)
        low, high = self.pit_interval(y, step=step, span=span)
        # one uniform value per person: the exact outcome has the same position at every draw
        share = fresh(self.n_samples, generator(random_state)) if ties is None else _ties(ties)
        if share.shape != (self.n_samples,):
            raise bad_input("ties", f"have shape ({self.n_samples},)", f"shape {share.shape}")
        return np.asarray(low + (share[:, None] if low.ndim == 2 else share) * (high - low))

    def log_cell(
        self, y: ArrayLike, step: float, span: tuple[float, float] | None = None
    ) -> Floats:
        """Log of the mean density over the rounding cell of `y` (method: front).

        Shape of the batch, in nats. `span` is the least and the greatest possible outcome, whose
        cells are open; by default none is.
        """
        low, high = self._rounding_cells(y, step, span)
        lower = self.distribution.logcdf(high)
        upper = self.distribution.logsf(low)
        # a difference within the smaller tail, which keeps its digits
        is_lower = lower < upper
        whole = np.where(is_lower, lower, upper)
        rest = np.where(is_lower, self.distribution.logcdf(low), self.distribution.logsf(high))
        return np.asarray(whole + log1mexp(rest - whole) - np.log(step))

    def ppf(self, p: ArrayLike) -> Floats:
        """Quantiles at `p`, shape of the batch; a list of probabilities adds a last axis."""
        levels = np.asarray(p, dtype=np.float64)
        if levels.ndim == 0:
            return self.distribution.ppf(levels)
        if levels.ndim != 1:
            raise bad_input("p", "be a number or a list of numbers", f"shape {levels.shape}")
        # add a last axis to the batch for the probabilities
        return self.distribution.expand().ppf(levels)

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of the central prediction intervals at a level."""
        share = check_fraction("level", level)
        # both ends at once along a first axis: for one person the calls cost more than the numbers
        ends = np.array([(1 - share) / 2, (1 + share) / 2])
        low, high = self.distribution.ppf(
            ends.reshape(2, *(1,) * len(self.distribution.batch_shape))
        )
        return low, high

    def mean(self) -> Floats:
        """Means at the draws, which are not point forecasts; shape of the batch."""
        return self._of_batch(self.distribution.mean())

    def std(self) -> Floats:
        """Standard deviations, shape of the batch."""
        return self._of_batch(self.distribution.std())

    def sample(self, random_state: RandomState = None) -> Floats:
        """Return one outcome drawn from each distribution, shape of the batch."""
        return self.distribution.ppf(fresh(self.distribution.batch_shape, generator(random_state)))

    def _rounding_cells(
        self, y: ArrayLike, step: float, span: tuple[float, float] | None
    ) -> tuple[Floats, Floats]:
        """Return the ends of rounding cells, refused where outcomes have cells of their own."""
        if self.has_atoms:
            remedy = "leave out step: their outcomes have cells of their own"
            raise bad_input("step", "be None for forecasts with atoms", step, remedy)
        # by default the cells of a person do not depend on the outcomes of others
        open_ends = (-np.inf, np.inf) if span is None else span
        low, high = cell_ends(check_finite("y", y), step, open_ends)
        return self._per_person(low), self._per_person(high)

    def _ends_above(self, values: Floats, upper: ArrayLike | None) -> Floats:
        """Check the upper ends of what is known of outcomes; the outcomes by default."""
        if upper is None:
            return values
        ends = self._per_person(upper)
        if not (ends >= values).all():
            raise bad_input("upper", "be at least y", "a smaller value, or one that is missing")
        return ends

    def _of_batch(self, values: Floats) -> Floats:
        return np.broadcast_to(values, self.distribution.batch_shape)

    def _per_person(self, y: ArrayLike) -> Floats:
        values = np.asarray(y, dtype=np.float64)
        if values.ndim == 0:
            return values
        if values.shape != (self.n_samples,):
            raise bad_input(
                "y", f"be a number or have shape ({self.n_samples},)", f"shape {values.shape}"
            )
        return values[:, None] if len(self.distribution.batch_shape) == 2 else values

    def _hurdle(self, method: str) -> Hurdle:
        if self.outcome_kind is not OutcomeKind.HURDLE:
            kinds = "a hurdle" + (" or 0/1" if method == "event_probability" else "")
            raise bad_input(
                "forecast", f"be {kinds} forecast for {method}", f"kind {str(self.outcome_kind)!r}"
            )
        return as_hurdle(self.distribution)


def _ties(ties: ArrayLike) -> Floats:
    """Return positions in cells as floats, strictly between 0 and 1."""
    share = np.asarray(ties, dtype=np.float64)
    wrong = ~((share > 0) & (share < 1))
    if wrong.any():
        raise bad_input("ties", "lie strictly between 0 and 1", float(share[wrong].flat[0]))
    return share


def cell_ends(
    y: Floats, step: float, span: tuple[float, float] | None = None
) -> tuple[Floats, Floats]:
    """Return the ends of rounding cells; those of the smallest and largest outcome are open.

    `span` is the smallest and the largest outcome, by default those of `y`.
    """
    if not step > 0:
        raise bad_input("step", "be positive", step)
    least, greatest = (y.min(), y.max()) if span is None else span
    low = np.where(y <= least, -np.inf, y - step / 2)
    return low, np.where(y >= greatest, np.inf, y + step / 2)
