"""Reliability of probabilities of an event: observed rates in bins of the probability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    bad_input,
    check_count,
    check_finite,
    check_fraction,
    check_rows,
    check_weights,
)
from evenhand.calibration.intervals import binomial_intervals
from evenhand.calibration.own_forecast import mid_ranks, rank_parts


class Reliability(NamedTuple):
    """Rates of an event in bins of its probability, with simultaneous intervals.

    Parameters
    ----------
    probability : ndarray of shape (k,)
        Mean probability in each bin, in increasing order.
    rate : ndarray of shape (k,)
        Share of people in each bin to whom the event occurred.
    low, high : ndarray of shape (k,)
        Ends of intervals that contain the true rates of all bins at once.
    n : ndarray of int, shape (k,)
        Number of people in each bin.
    """

    probability: Floats
    rate: Floats
    low: Floats
    high: Floats
    n: Ints

    @property
    def is_off(self) -> Mask:
        """Whether the mean probability of each bin lies outside its interval, shape (k,)."""
        return (self.probability < self.low) | (self.probability > self.high)

    def table(self) -> pd.DataFrame:
        """Return one row per bin: `bin`, `n`, `probability`, `rate`, `low`, `high`."""
        columns = self._asdict()
        return pd.DataFrame({"bin": np.arange(self.n.size), "n": columns.pop("n")} | columns)


def reliability(
    probability: ArrayLike,
    event: ArrayLike,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    confidence: float = 0.95,
) -> Reliability:
    """Compare probabilities of an event with its rates, in bins of equal numbers of people.

    Parameters
    ----------
    probability : array-like of shape (n,) or (n, m)
        Probabilities of the event; the mean is taken over draws, since only the mean matters
        (outcomes: 3).
    event : array-like of shape (n,)
        1 or True where the event occurred, else 0 or False.
    weights : array-like of shape (n,), optional
        Weights of the people.
    n_bins : int, default 10
        Largest number of bins. Their edges are quantiles of the probability; people with the same
        probability are in the same bin, so there may be fewer.
    confidence : float, default 0.95
        Probability that the intervals of all bins contain the true rates.

    Returns
    -------
    Reliability
        A named tuple `(probability, rate, low, high, n)`. The intervals are those of Clopper and
        Pearson, by Bonferroni. Where people in a bin have different probabilities, the number of
        events varies less than a binomial one (Hoeffding, Annals of Mathematical Statistics 27,
        1956). With weights the intervals use the effective number of people and are asymptotic.

    Raises
    ------
    InputError
        If a probability is not between 0 and 1, or an event is neither 0 nor 1.

    Examples
    --------
    >>> p = np.repeat([0.1, 0.5], 100)
    >>> event = np.arange(200) % 10 < np.repeat([1, 8], 100)
    >>> reliability(p, event).table().round(2)
       bin    n  probability  rate   low  high
    0    0  100          0.1   0.1  0.04  0.19
    1    1  100          0.5   0.8  0.69  0.88
    """
    predicted, occurred = check_events(probability, event)
    w = check_weights(weights, predicted.size)
    count = check_count("n_bins", n_bins)
    check_fraction("confidence", confidence)
    kept = w > 0
    place = probability_bins(predicted, count, kept)
    predicted, occurred, w = predicted[kept], occurred[kept], w[kept]
    number = np.bincount(place)
    weight = np.bincount(place, w)
    rate = np.bincount(place, w * occurred) / weight
    # the effective number of people (Kish): their number, without weights
    trials = weight**2 / np.bincount(place, w**2)
    hits = rate * trials
    if weights is None:
        hits, trials = np.rint(hits), np.rint(trials)
    low, high = binomial_intervals(hits, hits, trials, (1 - confidence) / (2 * number.size))
    return Reliability(np.bincount(place, w * predicted) / weight, rate, low, high, number)


def probability_bins(probability: Floats, n_bins: int = 10, kept: Mask | None = None) -> Ints:
    """Return the bin of each probability, from 0, in bins of equal numbers of people.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Probabilities. Equal ones are in the same bin, so there may be fewer than `n_bins`.
    n_bins : int, default 10
        Largest number of bins.
    kept : ndarray of bool, shape (n,), optional
        People whose bins are returned; the bins are those of all.

    Examples
    --------
    >>> probability_bins(np.array([0.1, 0.5, 0.1, 0.9]), n_bins=2)
    array([0, 1, 0, 1])
    """
    # bins depend on the probabilities alone: given these, events remain independent
    parts = rank_parts(mid_ranks(probability), n_bins)
    return np.unique(parts if kept is None else parts[kept], return_inverse=True)[1]


def check_events(probability: ArrayLike, event: ArrayLike) -> tuple[Floats, Floats]:
    """Check probabilities and events, one of each per person."""
    values = np.asarray(probability, dtype=np.float64)
    means = check_finite("probability", values.mean(axis=-1) if values.ndim == 2 else values)
    wrong = (values < 0) | (values > 1)
    if wrong.any():
        first = int(np.argwhere(wrong)[0, 0])
        got = float(values[wrong][0])
        raise bad_input(f"probability[{first}]", "lie between 0 and 1", got)
    occurred = check_rows("event", event, means.size)
    wrong = (occurred != 0) & (occurred != 1)
    if wrong.any():
        first = int(np.argmax(wrong))
        remedy = "code the event as 1 and its absence as 0"
        raise bad_input(f"event[{first}]", "be 0 or 1", float(occurred[first]), remedy)
    return means, occurred
