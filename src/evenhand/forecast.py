"""Forecasts: batches of distributions with their draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import number_in_full, one_line
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    as_floats,
    bad_input,
    check_choice,
    check_fraction,
    check_horizon,
    check_probabilities,
    check_rows,
    named,
)
from evenhand.calibration import Cells, Reading
from evenhand.distributions import (
    NO_BINARY_RANDOMIZATION,
    Bernoulli,
    Categorical,
    Distribution,
    End,
    Hurdle,
    NegativeBinomial,
    Normal,
    OutcomeKind,
    Poisson,
    Quantiles,
    Randomized,
    Samples,
    SurvivalCurves,
    as_hurdle,
    beyond,
    empirical,
    found_inside,
)
from evenhand.draws import RandomState, as_draws, fresh, generator
from evenhand.links import Link, make_link
from evenhand.outcomes import OPEN, Outcomes, Rounding, as_outcomes
from evenhand.tables import row_blocks

BLOCK_ROWS = 1000
BLOCK_FORECASTS = 16_000
"""People in a block, more if they have few draws: tables have some 300 quantiles for each draw."""


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Predicted distributions of `n` people, with the draws at which they were made.

    Parameters
    ----------
    distribution : Distribution
        Batch of shape (n,) for one distribution per person, (n, m) for one per person and draw.
    r : ndarray of shape (n,), (1, m) or (n, m), or None
        Draws strictly between 0 and 1; None for a deterministic forecast, whose batch has shape
        (n,).

    Examples
    --------
    >>> forecast = Forecast.from_normal(mean=[0.0, 10.0], std=[1.0, 2.0])
    >>> low, high = forecast.interval(0.9)
    >>> low.round(2), high.round(2)
    (array([-1.64,  6.71]), array([ 1.64, 13.29]))

    The smaller alpha is, the closer a person's PIT is to the draw, whatever the outcome:

    >>> forecast.randomized(alpha=0.001, r=[0.2, 0.7]).pit([0.5, 9.0]).round(2)
    array([0.2, 0.7])

    Forecasts are indexed like arrays; a single index returns the forecast of one person:

    >>> forecast[:1].n_samples, forecast[forecast.mean() > 5].mean(), forecast[-1].n_samples
    (1, array([10.]), 1)
    """

    distribution: Distribution
    r: Floats | None = None

    def __post_init__(self) -> None:
        shape = self.distribution.batch_shape
        if len(shape) not in (1, 2) or shape[0] == 0:
            rule = "be a batch of shape (n,) or (n, m), n >= 1"
            raise bad_input("distribution", rule, f"shape {shape}")
        if self.r is None and len(shape) == 2:
            raise bad_input("r", f"be the draws of a batch of shape {shape}", None)
        # draws of shape (1, m) are shared by all people
        shared = (1, *shape[1:]) if len(shape) == 2 else shape
        if self.r is not None and self.r.shape not in (shape, shared):
            raise bad_input("r", f"have the shape of the batch, {shape}", f"shape {self.r.shape}")

    @classmethod
    def from_normal(cls, mean: ArrayLike, std: ArrayLike) -> Forecast:
        """Make a deterministic forecast from means and standard deviations (> 0), shape (n,)."""
        return cls(Normal(np.atleast_1d(mean), std))

    @classmethod
    def from_quantiles(
        cls, levels: ArrayLike, values: ArrayLike, *, sort: bool = False
    ) -> Forecast:
        """Make a deterministic forecast from quantiles `values` (n, q) at `levels` (q,) in (0, 1).

        The CDF is linear between quantiles, with exponential tails. Crossing quantiles are refused,
        or sorted in each row if `sort` is True. Equal quantiles are separated by a billionth of the
        row's range, so that a density exists.

        Examples
        --------
        Between few quantiles, the CDF has an error although they are right:

        >>> from scipy.stats import norm
        >>> from evenhand.calibration import calibration_error
        >>> y = norm.ppf((np.arange(2000) + 0.5) / 2000)
        >>> for levels in ([0.1, 0.5, 0.9], [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]):
        ...     few = Forecast.from_quantiles(levels, np.tile(norm.ppf(levels), (2000, 1)))
        ...     print(f"{100 * calibration_error(few.pit(y)):.1f} points")
        2.3 points
        0.5 points
        """
        return cls(Quantiles(levels, np.atleast_2d(values), sort=sort))

    @classmethod
    def from_samples(
        cls, values: ArrayLike, *, kind: OutcomeKind | str = OutcomeKind.CONTINUOUS
    ) -> Forecast:
        """Make a deterministic forecast from samples of each distribution, shape (n, n_draws).

        `kind` is "continuous" for kernel density estimates, or "count" for the shares of the values
        among the samples of each row.
        """
        samples = np.atleast_2d(values)
        is_count = check_choice("kind", str(kind), ("continuous", "count")) == "count"
        return cls(empirical(samples) if is_count else Samples(samples))

    @classmethod
    def from_probability(cls, probability: ArrayLike) -> Forecast:
        """Make a forecast of events (1 or 0) from their probabilities, shape (n,).

        Examples
        --------
        >>> forecast = Forecast.from_probability([0.1, 0.7])
        >>> str(forecast.outcome_kind), forecast.pit_interval([0, 1])
        ('binary', (array([0. , 0.3]), array([0.9, 1. ])))
        """
        remedy = "give the column of the event, as predict_proba(X)[:, 1]"
        return cls(Bernoulli(_one_per_person("probability", probability, remedy)))

    @classmethod
    def from_pmf(cls, support: ArrayLike, probabilities: ArrayLike) -> Forecast:
        """Make a forecast from the probabilities (n, K) of the values `support` (K,) or (n, K).

        The values increase strictly, and each row of probabilities adds up to 1. With the values 0
        and 1 it is a forecast of events, as by `from_probability`.

        Examples
        --------
        >>> stars = Forecast.from_pmf([1, 2, 3], [[0.2, 0.5, 0.3]])
        >>> stars.mean(), stars.pit_interval([2])
        (array([2.1]), (array([0.2]), array([0.7])))
        """
        made = Categorical(support, np.atleast_2d(probabilities))
        if np.array_equal(made.support, (0.0, 1.0)):
            return cls(Bernoulli(made.probabilities[..., 1]))
        return cls(made)

    @classmethod
    def from_poisson(cls, mean: ArrayLike) -> Forecast:
        """Make a forecast of Poisson distributed counts from their means (> 0), shape (n,)."""
        return cls(Poisson(_one_per_person("mean", mean)))

    @classmethod
    def from_negative_binomial(cls, mean: ArrayLike, dispersion: ArrayLike) -> Forecast:
        """Make a forecast of negative binomial counts, which vary more than Poisson counts.

        The variance is `mean + dispersion * mean**2`; both are positive, a number or shape (n,).
        """
        return cls(NegativeBinomial(_one_per_person("mean", mean), dispersion))

    @classmethod
    def from_hurdle(
        cls, chance_of_zero: ArrayLike, positive: Forecast, at: float = 0.0, end: End = "low"
    ) -> Forecast:
        """Make a forecast of an outcome that often is at one end of its range, such as claims.

        Parameters
        ----------
        chance_of_zero : array-like of shape (n,)
            Probabilities of the outcome `at`, 0 to 1.
        positive : Forecast
            Continuous forecast of the other outcomes, given that they are not `at`; deterministic
            or randomized, which is kept. A forecast that reaches beyond `at` is truncated there.
        at : float, default 0
            Value at the end of the range.
        end : {"low", "high"}, default "low"
            Whether `at` is the least or the greatest outcome.

        Examples
        --------
        >>> claim = Forecast.from_hurdle([0.8], Forecast.from_quantiles([0.1, 0.9], [[50, 900]]))
        >>> claim.pit_interval([0.0]), claim.event_probability().round(2)
        ((array([0.]), array([0.8])), array([0.2]))
        """
        if not isinstance(positive, Forecast):
            raise bad_input("positive", "be a Forecast", type(positive).__name__)
        chance = _one_per_person("chance_of_zero", chance_of_zero)
        if chance.size not in (1, len(positive)):
            rule = f"have one value per row of positive, shape ({len(positive)},)"
            raise bad_input("chance_of_zero", rule, f"shape {chance.shape}")
        part = beyond(positive.distribution, at, end)
        chance = chance.reshape(-1, *(1,) * (len(part.batch_shape) - 1))
        return cls(Hurdle(chance, part, at, end), positive.r)

    @classmethod
    def from_survival(
        cls, times: ArrayLike, survival: ArrayLike, horizon: float | None = None
    ) -> Forecast:
        """Make a deterministic forecast of times from survival probabilities (outcomes: 5).

        Parameters
        ----------
        times : array-like of shape (q,)
            Increasing times above 0, in units of the outcome.
        survival : array-like of shape (n, q)
            Probability of each person's time being beyond each of `times`; falls in each row. The
            curve begins at 1 at time 0, is linear between `times`, and has a constant hazard beyond
            the last of them.
        horizon : float, optional
            Time, above 0, beyond which outcomes are not followed. The forecast is then of
            `min(T, horizon)`, a hurdle forecast: whether the event happens by the horizon, and
            when, given that it does.

        See Also
        --------
        evenhand.forecasters.SurvivalModel : forecasts of fitted survival models.

        Examples
        --------
        >>> forecast = Forecast.from_survival([1, 2, 5], [[0.9, 0.7, 0.4]], horizon=2)
        >>> forecast.event_probability().round(2), forecast.ppf(0.05).round(2)
        (array([0.3]), array([0.5]))
        """
        curves = SurvivalCurves(times, np.atleast_2d(as_floats("survival", survival)))
        if horizon is None:
            return cls(curves)
        tau = check_horizon(horizon)
        return cls.from_hurdle(curves.sf(tau), cls(curves), at=tau, end="high")

    def positive_part(self) -> Forecast:
        """Forecast of the outcomes that are not at the atom of a hurdle forecast, all rows.

        Raises
        ------
        InputError
            If the forecast is of another kind.
        """
        return Forecast(self._hurdle().positive, self.r)

    def __getitem__(self, rows: int | slice | ArrayLike) -> Forecast:
        """Return the forecast of some people, not of none; `rows` index as for an array.

        An integer returns the forecast of one person, with `n_samples` 1, so that a loop over a
        forecast is a loop over people.
        """
        every: Any = np.arange(self.n_samples)
        index = rows if isinstance(rows, slice) else every[rows].reshape(-1)
        draws = self.r
        # one row of draws, shape (1, m), is shared by all people
        if draws is not None and (draws.ndim == 1 or draws.shape[0] > 1):
            draws = draws[index]
        return Forecast(self.distribution.take(index), draws)

    def blocks(self) -> Iterator[tuple[slice, Forecast]]:
        """Yield rows and their forecasts, so few that the table of their quantiles fits in memory.

        A single block is the forecast itself, which keeps its table for the next measure.
        """
        shape = self.distribution.batch_shape
        size = max(BLOCK_ROWS, BLOCK_FORECASTS // (shape[1] if len(shape) == 2 else 1))
        blocks = row_blocks(self.n_samples, size)
        yield from ((rows, self[rows] if len(blocks) > 1 else self) for rows in blocks)

    def take_draws(self, columns: Ints) -> Forecast:
        """Return the forecast at k draws of each person, whose columns are `columns` (n, k)."""
        assert self.r is not None
        r = np.broadcast_to(self.r, self.distribution.batch_shape)
        draws = np.take_along_axis(r, columns, axis=-1)
        return Forecast(self.distribution.take_draws(columns), draws)

    def randomized(
        self,
        alpha: float = 0.1,
        link: str | Link = "entropic",
        r: ArrayLike | None = None,
        *,
        random_state: RandomState = None,
    ) -> Forecast:
        """Randomize a deterministic forecast through a link.

        Of a hurdle forecast only the continuous part is randomized, and forecasts of 0/1 outcomes
        are refused: there randomization has a cost and no benefit (outcomes: 3 and 4.2).

        Parameters
        ----------
        alpha : float, default 0.1
            Weight of sharpness, 0 < alpha <= 1; at 1 the forecast does not change.
        link : {"entropic", "laplace", "gaussian"} or Link
            Link, by name or as an object.
        r : None, float, array of shape (n,), (1, m) or (n, m)
            Draws; with None, one fresh draw per person.
        random_state : int, generator or None
            Seed for fresh draws.

        Raises
        ------
        InputError
            If the forecast is already randomized (randomization is the last step), or is of 0/1
            outcomes.
        """
        if self.outcome_kind is OutcomeKind.BINARY:
            raise InputError(NO_BINARY_RANDOMIZATION)
        # a second draw would widen the forecast again, and no certificate covers that
        if self.is_randomized:
            raise InputError(
                "this forecast is already randomized; randomize the deterministic forecast instead"
            )
        draws = as_draws(r, self.n_samples, random_state)
        # several draws per person need a separate axis
        base = self.distribution.expand() if draws.ndim == 2 else self.distribution
        made = make_link(link, alpha)
        if self.outcome_kind is not OutcomeKind.HURDLE:
            return Forecast(Randomized(base, made, draws), draws)
        # the atom stays as it is: randomization cannot improve it (outcomes: 4.2)
        hurdle = as_hurdle(base)
        part = Randomized(hurdle.positive, made, draws)
        return Forecast(Hurdle(hurdle.chance, part, hurdle.at, hurdle.end), draws)

    def __repr__(self) -> str:
        name, shape = type(self.distribution).__name__, self.distribution.batch_shape
        return one_line(self, distribution=name, shape=shape, is_randomized=self.is_randomized)

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the forecast describes: continuous, count, hurdle or binary."""
        return self.distribution.outcome_kind

    @property
    def atom_end(self) -> End | None:
        """End of the range at which a hurdle forecast has its atom; None for other forecasts."""
        return self._hurdle().end if self.outcome_kind is OutcomeKind.HURDLE else None

    @property
    def atom(self) -> float | None:
        """Atom of a hurdle forecast; None, which no outcome equals, for other forecasts."""
        return self._hurdle().at if self.outcome_kind is OutcomeKind.HURDLE else None

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
            return self.distribution.sf(0.0)
        return np.broadcast_to(1 - self._hurdle().chance, self.distribution.batch_shape)

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

    def cdf(self, y: ArrayLike, *, left: bool = False) -> Floats:
        """CDF at `y`, a number or one value per person, or its left limit; shape of the batch."""
        return self.distribution.cdf(self._per_person(y), left=left)

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

    def cells(
        self,
        outcomes: ArrayLike | Outcomes,
        *,
        rounding: Rounding | None = None,
        ties: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> Cells:
        """Return the cells of outcomes on the PIT axis, with a position in each (method: 12).

        A continuous outcome is a point, an atom the cell `[F(y-), F(y)]`, and the cell of a rounded
        outcome reaches over all values that are rounded to it. The cell of a time that is cut off
        reaches from what is known to 1, and its position is unknown; so does that of a person who
        reached the horizon, unless the forecast has an atom there, and the reading is "beyond".

        Parameters
        ----------
        outcomes : array-like of shape (n,) or Outcomes
            Outcomes of the same people.
        rounding : Rounding, optional
            Rounding cells of all outcomes, as from `rounding`; none by default.
        ties : array-like of shape (n,), optional
            Position of each person in the cell, between 0 and 1, uniform and independent of the
            draws (`KeyedDraws.ties`).
        random_state : int, generator or None
            Seed for the positions if there are no `ties`.

        Returns
        -------
        Cells

        Examples
        --------
        >>> Forecast.from_poisson([2.0, 2.0]).cells([0, 3], ties=[0.5, 0.5]).high.ravel().round(3)
        array([0.135, 0.857])
        """
        known = as_outcomes(outcomes)
        self._per_person(known.value)
        # one uniform value per person: the exact outcome has the same position at every draw
        given = fresh(self.n_samples, generator(random_state)) if ties is None else ties
        share = check_probabilities("ties", check_rows("ties", given, self.n_samples))
        return cells_of(self.distribution, self, known, rounding or Rounding(), share)

    def inside_link(self) -> Randomized | None:
        """Return the distributions of a link around one base distribution per person, or None."""
        distribution = self.distribution
        if self.r is None or not isinstance(distribution, Randomized):
            return None
        # a base with several draws per person is not deterministic
        is_one_each = self.r.ndim == 1 or distribution.base.batch_shape[-1:] in ((), (1,))
        return distribution if is_one_each else None

    def rounding(self, outcomes: ArrayLike | Outcomes) -> Rounding:
        """Return the rounding cells of outcomes, which only continuous parts of forecasts need.

        Of times only those of events are rounded. Many people may be cut off on one day, or reach
        the horizon: that is no rounding, and none of these times stands for all beyond it.
        """
        known = as_outcomes(outcomes)
        if known.are_times:
            return Rounding(Rounding.of(known.value[known.happened]).step)
        y = known.value[known.value != self.atom]
        return Rounding.of(y) if y.size and not self.distribution.is_lattice else Rounding()

    def pit_interval(
        self, y: ArrayLike | Outcomes, *, rounding: Rounding | None = None
    ) -> tuple[Floats, Floats]:
        """Return the ends of the cells of the PITs: the CDF just before and at the outcomes.

        The parameters are those of `cells` (outcomes: 2).

        Returns
        -------
        low, high : ndarray of shape (n,) or (n, m)
            Ends of the cells; equal where the outcome has no positive probability.
        """
        found = self.cells(y, rounding=rounding, ties=np.zeros(self.n_samples))
        shape = self.distribution.batch_shape
        return found.low.reshape(shape), found.high.reshape(shape)

    def pit(
        self,
        y: ArrayLike | Outcomes,
        *,
        ties: ArrayLike | None = None,
        rounding: Rounding | None = None,
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
            Position in the cell, between 0 and 1, uniform and independent of the draws; see
            `KeyedDraws.ties`. Needed if the forecast has atoms.
        rounding : Rounding, optional
            Rounding cells of the outcomes, as from `rounding`; none by default.
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
            remedy = "pass KeyedDraws.ties, as PITs of outcomes with a probability are intervals"
            raise bad_input("ties", "be one uniform number per person", None, remedy)
        found = self.cells(y, rounding=rounding, ties=ties, random_state=random_state)
        return found.drawn.reshape(self.distribution.batch_shape)

    def log_cell(self, y: ArrayLike, step: float, span: tuple[float, float] = OPEN) -> Floats:
        """Log of the mean density over the rounding cell of `y` (method: front).

        Shape of the batch, in nats. `span` is the least and the greatest possible outcome, whose
        cells are open; by default none is.
        """
        low, high = map(self._per_person, Rounding(step, span).ends(as_outcomes(y).value))
        return self.distribution.log_between(low, high) - np.log(step)

    def ppf(self, p: ArrayLike) -> Floats:
        """Quantiles at `p`, shape of the batch; a list of probabilities adds a last axis."""
        levels = np.asarray(p, dtype=float)
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
        shape = (2, *(1,) * len(self.distribution.batch_shape))
        low, high = self.distribution.ppf(ends.reshape(shape))
        return low, high

    def mean(self) -> Floats:
        """Means at the draws, which are not point forecasts; shape of the batch."""
        return self.distribution.mean()

    def std(self) -> Floats:
        """Standard deviations, shape of the batch."""
        return self.distribution.std()

    def sample(self, random_state: RandomState = None) -> Floats:
        """Return one outcome drawn from each distribution, shape of the batch."""
        return self.distribution.ppf(fresh(self.distribution.batch_shape, generator(random_state)))

    def _per_person(self, y: ArrayLike) -> Floats:
        values = np.asarray(y, dtype=float)
        if values.shape not in ((), (self.n_samples,)):
            rule = f"be a number or have shape ({self.n_samples},)"
            raise bad_input("y", rule, f"shape {values.shape}")
        is_wide = values.ndim and len(self.distribution.batch_shape) == 2
        return values[:, None] if is_wide else values

    def _hurdle(self) -> Hurdle:
        if self.outcome_kind is not OutcomeKind.HURDLE:
            raise bad_input("forecast", "be a hurdle forecast", f"kind {str(self.outcome_kind)!r}")
        return as_hurdle(self.distribution)


def _one_per_person(name: str, values: ArrayLike, remedy: str = "") -> Floats:
    """Return parameters as floats of shape (n,); a number is that of one person."""
    array = np.atleast_1d(as_floats(name, values))
    if array.ndim != 1:
        rule = "have one value per person, shape (n,)"
        raise bad_input(name, rule, f"shape {array.shape}", remedy)
    return array


# --- cells of outcomes on the PIT axis (method: 12)


def cells_of(
    inside: Distribution, forecast: Forecast, outcomes: Outcomes, rounding: Rounding, ties: Floats
) -> Cells:
    """Return the cells of outcomes under distributions inside a forecast, or its own with its draw.

    The cell of a rounded outcome ends at the atom of a hurdle: the outcome is known not to be the
    atom. Times that are cut off have no upper end, and neither have outcomes at the horizon, unless
    the forecast has an atom there (outcomes: 5).
    """
    y, reading = outcomes.value, None
    low, high = rounding.ends(y)
    is_hurdle = forecast.outcome_kind is OutcomeKind.HURDLE
    if is_hurdle and rounding.is_used:
        hurdle = as_hurdle(forecast.distribution)
        if hurdle.end == "low":
            low = np.maximum(low, np.nextafter(hurdle.at, np.inf))
        else:
            high = np.minimum(high, np.nextafter(hurdle.at, -np.inf))
        low, high = np.where(y == hurdle.at, y, (low, high))
    if outcomes.are_times:
        is_open = outcomes.is_lost if is_hurdle else ~outcomes.happened
        low, high = np.where(is_open, y, low), np.where(is_open, np.inf, high)
        reading = np.select((outcomes.is_lost, is_open), (Reading.UNKNOWN, Reading.BEYOND))
    r = forecast.r if inside is forecast.distribution else None
    draws = None if r is None else np.broadcast_to(r, inside.batch_shape)
    if len(inside.batch_shape) == 2:
        low, high = low[:, None], high[:, None]
    # exactly 1 where nothing is known above
    upper = np.where(np.isposinf(high), 1.0, inside.cdf(high))
    # without atoms and a grid both ends of a cell are the outcome: one evaluation suffices
    if not inside.has_atoms and np.array_equal(low, high):
        return Cells(upper, draws=draws, reading=reading)
    lower = np.minimum(inside.cdf(low, left=True), upper)
    return Cells(lower, upper, draws=draws, reading=reading, ties=ties)


def calibrated_under(forecast: Forecast, random: np.random.Generator) -> Distribution:
    """Return distributions of shape (n,) or (n, 1) under which the forecasts are calibrated."""
    distribution = forecast.distribution
    inside = forecast.inside_link()
    if inside is not None:
        return inside.base
    if isinstance(distribution, Hurdle) and isinstance(distribution.positive, Randomized):
        chance = (
            distribution.chance if distribution.chance.ndim == 1 else distribution.chance[:, :1]
        )
        return Hurdle(chance, distribution.positive.base, distribution.at, distribution.end)
    if len(distribution.batch_shape) == 1:
        return distribution
    n, m = distribution.batch_shape
    return distribution.take_draws(random.integers(m, size=(n, 1)))


# --- checks of forecasts of times that may be cut off (outcomes: 5)


def check_forecast_of_times(forecast: Forecast, outcomes: Outcomes) -> None:
    """Raise InputError if forecasts are of times without `event`, or not those of the times."""
    kind = forecast.outcome_kind
    if not outcomes.are_times and found_inside(forecast.distribution, SurvivalCurves) is not None:
        raise InputError(
            f"{named('event')} is missing, and these are forecasts of times; give it, with 1 at"
            " observed events and 0 at times that are cut off"
        )
    if outcomes.are_times and kind not in (OutcomeKind.HURDLE, OutcomeKind.CONTINUOUS):
        raise InputError(
            f"{named('event')} is given, but forecasts of the kind {str(kind)!r} are not of times;"
            " leave it out"
        )
    if outcomes.are_times:
        check_atom_at_horizon(forecast, outcomes.horizon)


def check_atom_at_horizon(forecast: Forecast, horizon: float | None) -> None:
    """Raise InputError if a forecast with an atom has it elsewhere than at the horizon."""
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return
    hurdle = as_hurdle(forecast.distribution)
    if hurdle.end == "low" or hurdle.at != horizon:
        end = "least" if hurdle.end == "low" else "greatest"
        given = "no horizon" if horizon is None else f"the horizon {number_in_full(horizon)}"
        raise InputError(
            f"forecasts of times have an atom at {number_in_full(hurdle.at)}, their {end} outcome,"
            f" but {given} is given; pass the horizon of Forecast.from_survival"
        )


__all__ = ["Forecast"]
