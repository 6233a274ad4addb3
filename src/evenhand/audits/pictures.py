"""What the pictures of an audit show, as numbers: none of it grows with the rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.calibration import (
    HISTOGRAM_CONFIDENCE,
    histogram_bins,
    n_effective,
    pit_histogram,
)
from evenhand.distributions import Randomized
from evenhand.forecast import Forecast
from evenhand.links import Entropic, Link, make_link
from evenhand.tables import take_rows

LEVELS = np.arange(1, 20) / 20
"""Probability levels of the calibration curve."""

EXAMPLE_LEVEL = 0.8
EXAMPLE_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where the outcomes of the people shown stand among all."""

EXAMPLE_DRAWS = (0.1, 0.35, 0.65, 0.9)
EXAMPLE_COLUMNS = ("row", "id", "draw", "low", "high", "median", "outcome")
PRICE_MASS = 0.2
PRICE_ALPHAS = np.geomspace(0.01, 1.0, 30)


def pit_table(pit: Floats, weight: Floats) -> pd.DataFrame:
    """Histogram of PITs: `start`, `end`, `share` of each bin, and the band `low` to `high` that holds all at once."""
    n_bins = histogram_bins(pit.shape[0])
    edges = np.arange(n_bins + 1) / n_bins
    share, low, high = pit_histogram(pit, weight / weight.sum(), n_bins)
    return pd.DataFrame(
        {"start": edges[:-1], "end": edges[1:], "share": share, "low": low, "high": high}
    )


def calibration_table(pit: Floats, weight: Floats) -> pd.DataFrame:
    """Share of outcomes at or below the forecast quantile of each level, with a 95% band that holds at all at once.

    The band is that of Dvoretzky, Kiefer and Wolfowitz (Massart 1990): exact for one PIT per
    person, approximate for several, whose mean varies less, and for rows with weights.
    """
    share = weight / weight.sum()
    return curve_table(
        np.array([share @ (pit <= level).mean(axis=-1) for level in LEVELS]), n_effective(weight)
    )


def curve_table(observed: Floats, n: float) -> pd.DataFrame:
    """Calibration curve of so many rows, from the share of PITs at or below each level."""
    margin = np.sqrt(np.log(2 / (1 - HISTOGRAM_CONFIDENCE)) / (2 * n))
    low = np.maximum(observed - margin, 0.0)
    high = np.minimum(observed + margin, 1.0)
    return pd.DataFrame({"level": LEVELS, "observed": observed, "low": low, "high": high})


def example_table(
    model_or_forecast: Any, X: Any, outcomes: Floats, kept: NDArray[np.intp]
) -> pd.DataFrame:
    """80% intervals and medians of five people spread over the outcomes, under several draws each.

    `kept` are the numbers of the rows in the table that was given.
    """
    n = outcomes.size
    places = np.unique(np.round((n - 1) * np.array(EXAMPLE_SHARES)).astype(np.intp))
    rows = np.argsort(outcomes, kind="stable")[places]
    if isinstance(model_or_forecast, Forecast):
        forecast = model_or_forecast[rows]
    else:
        draws = np.tile(EXAMPLE_DRAWS, (rows.size, 1))
        forecast = model_or_forecast.forecast(take_rows(X, rows), draws)
    records: list[dict[str, Any]] = []
    for row, shown in zip(rows, _shown(forecast), strict=True):
        person = {"row": int(kept[row]), "id": None, "outcome": float(outcomes[row])}
        records += [person | interval for interval in shown]
    return pd.DataFrame(records, columns=list(EXAMPLE_COLUMNS))


def _shown(forecast: Forecast) -> list[list[dict[str, Any]]]:
    """Intervals of each person under at most four of the draws, in rising order."""
    tail = (1 - EXAMPLE_LEVEL) / 2
    ends = forecast.ppf([tail, 1 - tail, 0.5])
    ends = ends if ends.ndim == 3 else ends[:, None, :]
    if forecast.r is None:
        return [[{"draw": None, **_ends(person[0])}] for person in ends]
    r = np.broadcast_to(forecast.r if forecast.r.ndim == 2 else forecast.r[:, None], ends.shape[:2])
    ranks = np.unique(np.round((r.shape[1] - 1) * np.array(EXAMPLE_DRAWS)).astype(np.intp))
    columns = np.argsort(r, axis=-1)[:, ranks]
    return [
        [{"draw": float(r[i, j]), **_ends(ends[i, j])} for j in person_columns]
        for i, person_columns in enumerate(columns)
    ]


def _ends(ends: Floats) -> dict[str, float]:
    return dict(zip(("low", "high", "median"), map(float, ends), strict=True))


def price_of(model_or_forecast: Any) -> dict[str, Any]:
    """What calibration of every group of a mass costs around a calibrated model, along a link's alpha (method: links).

    The model's own link, if it has one, and its own point; otherwise the entropic one.
    """
    link = _link_of(model_or_forecast)
    curve = [dict(point) for point in _price_curve(Entropic if link is None else type(link))]
    name = Entropic.name if link is None else link.name
    return {
        "link": name,
        "mass": PRICE_MASS,
        "curve": curve,
        "chosen": None if link is None else _priced(link),
    }


def _link_of(model_or_forecast: Any) -> Link | None:
    from evenhand.forecasters import RandomizedRegressor

    if isinstance(model_or_forecast, RandomizedRegressor):
        return make_link(model_or_forecast.link, model_or_forecast.alpha)
    distribution = getattr(model_or_forecast, "distribution", None)
    return distribution.link if isinstance(distribution, Randomized) else None


@lru_cache
def _price_curve(family: type[Link]) -> tuple[dict[str, float], ...]:
    return tuple(_priced(family(float(alpha))) for alpha in PRICE_ALPHAS)


def _priced(link: Link) -> dict[str, float]:
    return {
        "alpha": link.alpha,
        "group_error": link.group_error(PRICE_MASS),
        "price": float(link.price),
    }
