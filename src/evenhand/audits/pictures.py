"""Numbers behind the pictures of an audit, of a size that does not depend on the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.calibration import (
    HISTOGRAM_CONFIDENCE,
    PITs,
    histogram_bins,
    n_effective,
    pit_histogram,
)
from evenhand.distributions import Randomized
from evenhand.forecast import Forecast
from evenhand.links import Entropic, Link, make_link

LEVELS = np.arange(1, 20) / 20
"""Probability levels of the calibration curve."""

EXAMPLE_LEVEL = 0.8
EXAMPLE_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Ranks of the outcomes of the people shown, as shares of all."""

EXAMPLE_RANKS = (0.1, 0.35, 0.65, 0.9)
"""Ranks of the draws that are shown, as shares of all."""

Interval = dict[str, float | None]
"""`draw`, `low`, `high` and `median` of one forecast."""

EXAMPLE_COLUMNS = ("row", "id", "draw", "low", "high", "median", "outcome")
PRICE_MASS = 0.2
PRICE_ALPHAS = np.geomspace(0.01, 1.0, 30)


def histogram_table(pits: PITs) -> pd.DataFrame:
    """Return the histogram of PITs: `start`, `end`, `share` of each bin, and its 95% band.

    The band `low` to `high` holds all bins at once.
    """
    return histogram_frame(
        *pit_histogram(pits.matrix, _shares(pits), histogram_bins(pits.n_samples))
    )


def histogram_frame(share: Floats, low: Floats, high: Floats) -> pd.DataFrame:
    """Histogram of equal bins of [0, 1] as a table."""
    edges = np.arange(share.size + 1) / share.size
    return pd.DataFrame(
        {"start": edges[:-1], "end": edges[1:], "share": share, "low": low, "high": high}
    )


def calibration_table(pits: PITs) -> pd.DataFrame:
    """Return the share of outcomes at or below the quantile of each level, with a 95% band.

    The band holds at all levels at once: that of Dvoretzky, Kiefer and Wolfowitz (Massart 1990),
    exact for one PIT per person, approximate for several, whose mean varies less, and for rows
    with weights.
    """
    share = _shares(pits)
    observed = [share @ (pits.matrix <= level).mean(axis=-1) for level in LEVELS]
    return curve_table(np.array(observed), n_effective(share))


def _shares(pits: PITs) -> Floats:
    if pits.weights is None:
        return np.full(pits.n_samples, 1 / pits.n_samples)
    return np.asarray(pits.weights / pits.weights.sum())


def curve_table(observed: Floats, n: float) -> pd.DataFrame:
    """Calibration curve of so many rows, from the share of PITs at or below each level."""
    # from P(sup |F_n - F| > t) <= 2 exp(-2 n t^2)
    margin = np.sqrt(np.log(2 / (1 - HISTOGRAM_CONFIDENCE)) / (2 * n))
    low = np.maximum(observed - margin, 0.0)
    high = np.minimum(observed + margin, 1.0)
    return pd.DataFrame({"level": LEVELS, "observed": observed, "low": low, "high": high})


def example_rows(outcomes: Floats) -> NDArray[np.intp]:
    """Return the rows of five people spread over the outcomes."""
    # ranks, not quantiles: the people shown are rows of the table, and few rows give fewer people
    places = np.unique(np.round((outcomes.size - 1) * np.array(EXAMPLE_SHARES)).astype(np.intp))
    return np.argsort(outcomes, kind="stable")[places]


def intervals(forecast: Forecast) -> list[list[Interval]]:
    """Return 80% intervals and medians of each person under at most four draws, in rising order."""
    tail = (1 - EXAMPLE_LEVEL) / 2
    ends = forecast.ppf([tail, 1 - tail, 0.5])
    ends = ends if ends.ndim == 3 else ends[:, None, :]
    if forecast.r is None:
        return [[{"draw": None, **_ends(person[0])}] for person in ends]
    r = np.broadcast_to(forecast.r if forecast.r.ndim == 2 else forecast.r[:, None], ends.shape[:2])
    # four draws over the whole range show how far a draw moves the interval, luck in the choice
    # of draws aside
    ranks = np.unique(np.round((r.shape[1] - 1) * np.array(EXAMPLE_RANKS)).astype(np.intp))
    columns = np.argsort(r, axis=-1)[:, ranks]
    return [
        [{"draw": float(r[i, j]), **_ends(ends[i, j])} for j in person_columns]
        for i, person_columns in enumerate(columns)
    ]


def example_table(
    rows: NDArray[np.intp], shown: Mapping[int, Sequence[Interval]], outcomes: Floats
) -> pd.DataFrame:
    """Return the intervals of some rows as a table, `row` being their numbers."""
    records = [
        {"row": row, "id": None, "outcome": float(outcomes[row])} | interval
        for row in rows.tolist()
        for interval in shown[row]
    ]
    return pd.DataFrame(records, columns=list(EXAMPLE_COLUMNS))


def _ends(ends: Floats) -> dict[str, float]:
    return dict(zip(("low", "high", "median"), map(float, ends), strict=True))


def price_of(model: Any) -> dict[str, Any]:
    """Return what calibration of every group of a mass costs, along the alpha of a link.

    The costs are those around a calibrated model (method: links). The link is the model's own, if
    it has one, with its own point; otherwise the entropic one.
    """
    link = _link_of(model)
    # copies: what is cached must not change where an audit's numbers are changed
    curve = [dict(point) for point in _price_curve(Entropic if link is None else type(link))]
    name = Entropic.name if link is None else link.name
    return {
        "link": name,
        "mass": PRICE_MASS,
        "curve": curve,
        "chosen": None if link is None else _priced(link),
    }


def _link_of(model: Any) -> Link | None:
    # imported here, as forecasters bring scikit-learn and an audit of forecasts does without
    from evenhand.forecasters import RandomizedRegressor

    if isinstance(model, RandomizedRegressor):
        return make_link(model.link, model.alpha)
    distribution = getattr(model, "distribution", None)
    return distribution.link if isinstance(distribution, Randomized) else None


# of a link alone, whatever the data: 30 links with an integral each are computed once
@lru_cache
def _price_curve(family: type[Link]) -> tuple[dict[str, float], ...]:
    return tuple(_priced(family(float(alpha))) for alpha in PRICE_ALPHAS)


def _priced(link: Link) -> dict[str, float]:
    return {
        "alpha": link.alpha,
        "group_error": link.group_error(PRICE_MASS),
        "price": float(link.price),
    }
