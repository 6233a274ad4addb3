"""Forecasts: batches of distributions with their draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import (
    Floats,
    InputError,
    as_floats,
    bad_input,
    check_choice,
)
from evenhand.censoring import check_horizon
from evenhand.distributions import (
    NO_BINARY_RANDOMIZATION,
    Bernoulli,
    Categorical,
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
)
from evenhand.draws import RandomState, as_draws
from evenhand.forecast.values import ForecastValues
from evenhand.links import Link, make_link


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(ForecastValues):
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

    @classmethod
    def from_normal(cls, mean: ArrayLike, std: ArrayLike) -> Forecast:
        """Make a deterministic forecast from means and standard deviations (> 0), shape (n,)."""
        return cls(Normal(np.atleast_1d(mean), std))

    @classmethod
    def from_quantiles(
        cls, levels: ArrayLike, values: ArrayLike, *, sort: bool = False
    ) -> Forecast:
        """Make a deterministic forecast from quantiles `values` (n, q) at `levels` (q,) in (0, 1).

        Crossing quantiles are refused, or sorted in each row if `sort` is True. Equal quantiles are
        separated by a billionth of the row's range, so that a density exists.
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
        kinds = (str(OutcomeKind.CONTINUOUS), str(OutcomeKind.COUNT))
        is_count = check_choice("kind", str(kind), kinds) == OutcomeKind.COUNT
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
        if made.support.shape == (2,) and (made.support == (0.0, 1.0)).all():
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
        cls,
        chance_of_zero: ArrayLike,
        positive: Forecast,
        at: float = 0.0,
        end: Literal["low", "high"] = "low",
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
        if positive.has_atoms:
            got = f"a forecast of kind {str(positive.outcome_kind)!r}"
            remedy = "use from_pmf for counts, with the probability of zero"
            raise bad_input("positive", "be a continuous forecast", got, remedy)
        chance = np.atleast_1d(as_floats("chance_of_zero", chance_of_zero))
        if chance.shape not in ((1,), (len(positive),)):
            rule = f"have shape ({len(positive)},), one per row of positive"
            raise bad_input("chance_of_zero", rule, f"shape {chance.shape}")
        check_choice("end", end, ("low", "high"))
        at = float(as_floats("at", at))
        part = beyond(positive.distribution, at, end)
        chance = np.broadcast_to(chance, len(positive))
        if len(part.batch_shape) == 2:
            chance = chance[:, None]
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
        return Forecast(self._hurdle("positive_part").positive, self.r)

    def __getitem__(self, rows: int | slice | ArrayLike) -> Forecast:
        """Return the forecast of some people.

        Parameters
        ----------
        rows : int, slice, array-like of int or mask of shape (n,)
            Index as for an array. An integer returns the forecast of one person, with `n_samples`
            1, so that a loop over a forecast is a loop over people.

        Raises
        ------
        IndexError
            If a row is out of range.
        InputError
            If the selection is empty, or `rows` has another type.
        """
        index: Any = rows if isinstance(rows, slice) else self._row_numbers(rows)
        draws = self.r
        # one row of draws, shape (1, m), is shared by all people
        if draws is not None and (draws.ndim == 1 or draws.shape[0] > 1):
            draws = draws[index]
        return Forecast(self.distribution.take(index), draws)

    @staticmethod
    def _row_numbers(rows: ArrayLike) -> NDArray[Any]:
        index = np.asarray(rows)
        if index.size == 0 and index.dtype.kind == "f":  # an empty list
            index = index.astype(np.intp)
        is_number = index.ndim == 0 and index.dtype.kind in "iu"
        if not is_number and (index.ndim != 1 or index.dtype.kind not in "iub"):
            rule = "be a row number, a slice, a list of row numbers or a mask"
            raise bad_input("rows", rule, repr(rows)[:80])
        return index.reshape(-1)

    def take_draws(self, columns: NDArray[np.intp]) -> Forecast:
        """Return the forecast at k draws of each person, whose columns are `columns` (n, k)."""
        if self.r is None or self.r.ndim != 2:
            got = "a deterministic forecast" if self.r is None else "one draw per person"
            raise bad_input("forecast", "have several draws per person, r of shape (n, m)", got)
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


def _one_per_person(name: str, values: ArrayLike, remedy: str = "") -> Floats:
    """Return parameters as floats of shape (n,); a number is that of one person."""
    array = np.atleast_1d(as_floats(name, values))
    if array.ndim != 1:
        rule = "have one value per person, shape (n,)"
        raise bad_input(name, rule, f"shape {array.shape}", remedy)
    return array
