"""Forecasts: batches of distributions with their draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import one_line
from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, InputError, bad_input, check_finite, check_fraction
from evenhand.distributions import Distribution, Normal, Quantiles, Randomized, Rearranged, Samples
from evenhand.draws import RandomState, as_draws, fresh, generator
from evenhand.links import Link, make_link

__all__ = ["Forecast"]


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
    def from_samples(cls, values: ArrayLike) -> Forecast:
        """Make a deterministic forecast from samples of each distribution, shape (n, n_draws)."""
        return cls(Samples(np.atleast_2d(values)))

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

    def cdf(self, y: ArrayLike) -> Floats:
        """CDF at `y`, a number or one value per person; shape of the batch."""
        return self.distribution.cdf(self._per_person(y))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density at `y`, a number or one value per person, in nats; shape of the batch."""
        return self.distribution.logpdf(self._per_person(y))

    def crps(self, y: ArrayLike) -> Floats:
        """CRPS at `y`, a number or one value per person, in units of `y`; shape of the batch."""
        return self.distribution.crps(self._per_person(y))

    def pit(
        self, y: ArrayLike, *, step: float | None = None, random_state: RandomState = None
    ) -> Floats:
        """Return the probability integral transforms (PITs), the CDF at the outcomes.

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        step : float, optional
            Rounding step of the outcomes. The PIT is then uniform between the CDF values at the
            ends of the rounding cell `y -+ step / 2`; the cells of the smallest and largest outcome
            are open.
        random_state : int, generator or None
            Seed for the position in the cell, one per person for all of the person's draws.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            Rows are people, columns are draws.
        """
        if step is None:
            return self.cdf(y)
        low, high = (self.cdf(end) for end in cell_ends(check_finite("y", y), step))
        # one uniform value per person: the exact outcome has the same position at every draw
        share = fresh(self.n_samples, generator(random_state))
        return np.asarray(low + (share[:, None] if low.ndim == 2 else share) * (high - low))

    def log_cell(
        self, y: ArrayLike, step: float, span: tuple[float, float] | None = None
    ) -> Floats:
        """Log of the mean density over the rounding cell of `y` (method: front).

        Shape of the batch, in nats. `span` is the smallest and the largest of all outcomes, whose
        cells are open; it is needed if `y` is only a part of the outcomes.
        """
        low, high = (self._per_person(end) for end in cell_ends(check_finite("y", y), step, span))
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
        return np.broadcast_to(self.distribution.mean(), self.distribution.batch_shape)

    def std(self) -> Floats:
        """Standard deviations, shape of the batch."""
        return np.broadcast_to(self.distribution.std(), self.distribution.batch_shape)

    def sample(self, random_state: RandomState = None) -> Floats:
        """Return one outcome drawn from each distribution, shape of the batch."""
        return self.distribution.ppf(fresh(self.distribution.batch_shape, generator(random_state)))

    def randomized(
        self,
        alpha: float = 0.1,
        link: str | Link = "entropic",
        r: ArrayLike | None = None,
        *,
        random_state: RandomState = None,
    ) -> Forecast:
        """Randomize a deterministic forecast through a link.

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
            If the forecast is already randomized: randomization is the last step.
        """
        # a second draw would widen the forecast again, and no certificate covers that
        if self.is_randomized:
            raise InputError(
                "this forecast is already randomized; randomize the deterministic forecast instead"
            )
        draws = as_draws(r, self.n_samples, random_state)
        # several draws per person need a separate axis
        base = self.distribution.expand() if draws.ndim == 2 else self.distribution
        return Forecast(Randomized(base, make_link(link, alpha), draws), draws)

    def rearranged(self) -> Forecast:
        """Return the forecast with CDFs that increase with the draw at each outcome.

        Needs several draws per person, in increasing order along the last axis.
        """
        if self.r is None or self.r.ndim != 2:
            got = "a deterministic forecast" if self.r is None else "one draw per person"
            raise InputError(
                "rearranged needs a forecast with several draws per person, r of shape (1, m) or"
                f" (n, m), got {got}"
            )
        # sorted CDFs are assigned to the draws in their order along the row
        if not (np.diff(self.r, axis=-1) > 0).all():
            raise bad_input("r", "increase along each row", "draws out of order", "sort the draws")
        return Forecast(Rearranged(self.distribution), self.r)

    def _per_person(self, y: ArrayLike) -> Floats:
        values = np.asarray(y, dtype=np.float64)
        if values.ndim == 0:
            return values
        if values.shape != (self.n_samples,):
            raise bad_input(
                "y", f"be a number or have shape ({self.n_samples},)", f"shape {values.shape}"
            )
        return values[:, None] if len(self.distribution.batch_shape) == 2 else values


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
