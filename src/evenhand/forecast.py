"""Forecasts: batches of distributions with the draws that made them."""

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
    """Forecast distributions of `n` people, with the draw behind each.

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

    The smaller alpha, the nearer a person's PIT is to the draw, whatever the outcome:

    >>> forecast.randomized(alpha=0.001, r=[0.2, 0.7]).pit([0.5, 9.0]).round(2)
    array([0.2, 0.7])

    Rows are taken as from an array, and a single row is a forecast of one person:

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
            raise bad_input("r", "be given for a batch over draws", "None")
        # draws of shape (1, m) are the same for all people
        shared = (1, *shape[1:]) if len(shape) == 2 else shape
        if self.r is not None and self.r.shape not in (shape, shared):
            raise bad_input("r", f"fit the batch {shape}", f"shape {self.r.shape}")

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

        Quantiles that cross, which fall with their level, are refused, or sorted in each row with
        `sort`; equal ones are moved apart by a billionth of the row's range, so that there is a
        density.
        """
        return cls(Quantiles(levels, np.atleast_2d(values), sort=sort))

    @classmethod
    def from_samples(cls, values: ArrayLike) -> Forecast:
        """Make a deterministic forecast from samples of each outcome, shape (n, n_draws)."""
        return cls(Samples(np.atleast_2d(values)))

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.distribution.batch_shape[0]

    @property
    def is_randomized(self) -> bool:
        """Whether a draw stands behind the distributions."""
        return self.r is not None

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, rows: int | slice | ArrayLike) -> Forecast:
        """Return the forecast of some people.

        Parameters
        ----------
        rows : int, slice, array-like of int or mask of shape (n,)
            As for an array. A number gives the forecast of one person, with `n_samples` 1, so that
            a loop over a forecast goes from person to person.

        Raises
        ------
        IndexError
            If a row is out of range.
        InputError
            If no row is left, or `rows` is none of the above.
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
        """Return the forecast under k draws of each person, those that `columns` (n, k) names."""
        if self.r is None or self.r.ndim != 2:
            raise bad_input("forecast", "have several draws per person, r of shape (n, m)", "fewer")
        r = np.broadcast_to(self.r, self.distribution.batch_shape)
        draws = np.take_along_axis(r, columns, axis=-1)
        return Forecast(self.distribution.take_draws(columns), draws)

    def cdf(self, y: ArrayLike) -> Floats:
        """CDF at `y`, a number or one value per person; shape of the batch."""
        return self.distribution.cdf(self._per_person(y))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density at `y`, a number or one per person, in nats; shape of the batch."""
        return self.distribution.logpdf(self._per_person(y))

    def crps(self, y: ArrayLike) -> Floats:
        """CRPS at `y`, a number or one per person, in units of `y`; shape of the batch."""
        return self.distribution.crps(self._per_person(y))

    def pit(
        self, y: ArrayLike, *, step: float | None = None, random_state: RandomState = None
    ) -> Floats:
        """Probability integral transforms, the CDF at the outcomes.

        Parameters
        ----------
        y : array-like of shape (n,)
            Outcomes.
        step : float, optional
            Rounding step of the outcomes. The PIT is then drawn uniformly from the probability of
            the cell `y -+ step / 2`, the cells of the least and the greatest outcome being open.
        random_state : int, generator or None
            Source of that draw: one per person, shared by the person's columns.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            Rows are people, columns draws.
        """
        if step is None:
            return self.cdf(y)
        low, high = (self.cdf(end) for end in cell_ends(check_finite("y", y), step))
        # one uniform per person: the true outcome lies at one place of its cell under every draw
        share = fresh(self.n_samples, generator(random_state))
        return np.asarray(low + (share[:, None] if low.ndim == 2 else share) * (high - low))

    def log_cell(
        self, y: ArrayLike, step: float, span: tuple[float, float] | None = None
    ) -> Floats:
        """Log probability of the rounding cell of `y`, per unit of `y`.

        Shape of the batch (method: front). `span` holds the least and the greatest outcome, whose
        cells are open, where `y` is a part of the outcomes.
        """
        low, high = (self._per_person(end) for end in cell_ends(check_finite("y", y), step, span))
        lower = self.distribution.logcdf(high)
        upper = self.distribution.logsf(low)
        # a difference within the smaller tail: the other one has lost its digits
        is_lower = lower < upper
        whole = np.where(is_lower, lower, upper)
        rest = np.where(is_lower, self.distribution.logcdf(low), self.distribution.logsf(high))
        return np.asarray(whole + log1mexp(rest - whole) - np.log(step))

    def ppf(self, p: ArrayLike) -> Floats:
        """Quantiles at `p`, shape of the batch; a list of probabilities adds an axis at the end."""
        levels = np.asarray(p, dtype=np.float64)
        if levels.ndim == 0:
            return self.distribution.ppf(levels)
        if levels.ndim != 1:
            raise bad_input("p", "be a number or a list of numbers", f"shape {levels.shape}")
        # the batch gets a last axis, along which the probabilities run
        return self.distribution.expand().ppf(levels)

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Lower and upper ends of the central interval that covers with probability `level`."""
        check_fraction("level", level)
        return self.ppf((1 - level) / 2), self.ppf((1 + level) / 2)

    def mean(self) -> Floats:
        """Means at the draws, not point forecasts; shape of the batch."""
        return np.broadcast_to(self.distribution.mean(), self.distribution.batch_shape)

    def std(self) -> Floats:
        """Standard deviations, shape of the batch."""
        return np.broadcast_to(self.distribution.std(), self.distribution.batch_shape)

    def sample(self, random_state: RandomState = None) -> Floats:
        """One outcome drawn from each distribution, shape of the batch."""
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
            Weight of sharpness, 0 < alpha <= 1; at 1 the forecast stays what it is.
        link : {"entropic", "laplace", "gaussian"} or Link
            Family of links.
        r : None, float, array of shape (n,), (1, m) or (n, m)
            Draws; None draws a fresh one per person.
        random_state : int, generator or None
            Source of fresh draws.

        Raises
        ------
        InputError
            If the forecast is randomized already: randomization is the outermost step.
        """
        # a second draw would spread the forecast again, and no certificate covers that
        if self.is_randomized:
            raise InputError(
                "this forecast is randomized already; randomize the deterministic forecast instead"
            )
        draws = as_draws(r, self.n_samples, random_state)
        # several draws per person need an axis of their own
        base = self.distribution.expand() if draws.ndim == 2 else self.distribution
        return Forecast(Randomized(base, make_link(link, alpha), draws), draws)

    def rearranged(self) -> Forecast:
        """Make the draws monotone: at each outcome the CDFs of a person increase with the draw.

        Needs several draws per person, in increasing order along the last axis.
        """
        if self.r is None or self.r.ndim != 2:
            raise InputError(
                "only a forecast with several draws per person, r of shape (1, m) or (n, m), is"
                " rearranged"
            )
        # sorted CDFs are given to the draws in their order along the row
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
    """Ends of the outcomes' rounding cells; those of the least and greatest, `span`, are open."""
    if not step > 0:
        raise bad_input("step", "be positive", step)
    least, greatest = (y.min(), y.max()) if span is None else span
    low = np.where(y <= least, -np.inf, y - step / 2)
    return low, np.where(y >= greatest, np.inf, y + step / 2)
