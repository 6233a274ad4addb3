"""Tables behind the figures of an audit; their size does not depend on the number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask
from evenhand.calibration import HISTOGRAM_CONFIDENCE, PITs, n_effective, ramps_at
from evenhand.distributions import OutcomeKind, Randomized
from evenhand.forecast import Forecast
from evenhand.links import Entropic, Link, make_link

LEVELS = np.arange(1, 20) / 20
"""Probability levels of the calibration curve."""

EXAMPLE_LEVEL = 0.8
EXAMPLE_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Ranks of the outcomes of the example people, as shares of all outcomes."""

EXAMPLE_RANKS = (0.1, 0.35, 0.65, 0.9)
"""Ranks of the example draws, as shares of all draws of a person."""

Interval = dict[str, float | None]
"""`draw`, `low`, `high` and `median` of one forecast."""

EXAMPLE_COLUMNS = ("row", "id", "draw", "low", "high", "median", "outcome")
PRICE_MASS = 0.2
PRICE_ALPHAS = np.geomspace(0.01, 1.0, 13)


def calibration_table(pits: PITs) -> pd.DataFrame:
    """Return the share of outcomes at or below the quantile of each level, with a 95% band.

    The band of Dvoretzky, Kiefer and Wolfowitz (Massart 1990) is simultaneous for all levels. It is
    valid for one PIT per person; it is approximate for several PITs, whose mean varies less, for
    weighted rows, and for outcomes with atoms, whose share is the mean over positions in the cells.
    """
    share = pits.shares
    observed = share @ ramps_at(LEVELS, pits.low, pits.high) / pits.n_draws
    return curve_table(observed, n_effective(share))


def curve_table(observed: Floats, n: float) -> pd.DataFrame:
    """Return the calibration curve of `n` rows from the share of PITs at or below each level."""
    margin = dkw_margin(n)
    low = np.maximum(observed - margin, 0.0)
    high = np.minimum(observed + margin, 1.0)
    return pd.DataFrame({"level": LEVELS, "observed": observed, "low": low, "high": high})


def dkw_margin(n: float) -> float:
    """Return the half width of the band of the calibration curve of `n` rows."""
    # from P(sup |F_n - F| > t) <= 2 exp(-2 n t^2)
    return float(np.sqrt(np.log(2 / (1 - HISTOGRAM_CONFIDENCE)) / (2 * n)))


def example_rows(outcomes: Floats) -> NDArray[np.intp]:
    """Return the rows of five people spread over the outcomes."""
    # ranks, not quantiles: the people are rows of the table, and few rows give fewer people
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
    # four draws spread over the whole range show how far a draw moves the interval, whatever
    # draws the person happens to have
    ranks = np.unique(np.round((r.shape[1] - 1) * np.array(EXAMPLE_RANKS)).astype(np.intp))
    columns = np.argsort(r, axis=-1)[:, ranks]
    return [
        [{"draw": float(r[i, j]), **_ends(ends[i, j])} for j in person_columns]
        for i, person_columns in enumerate(columns)
    ]


def example_table(
    rows: NDArray[np.intp],
    shown: Mapping[int, Sequence[Interval]],
    outcomes: Floats,
    lost: Mask | None = None,
) -> pd.DataFrame:
    """Return the intervals of some rows as a table with the row numbers in column `row`.

    If `lost` is given, it marks outcomes that are only known to be later, also in the table.
    """
    records = [
        {"row": row, "id": None, "outcome": float(outcomes[row])} | interval
        for row in rows.tolist()
        for interval in shown[row]
    ]
    table = pd.DataFrame(records, columns=list(EXAMPLE_COLUMNS))
    return table if lost is None else table.assign(lost=lost[table["row"].to_numpy(dtype=np.intp)])


def _ends(ends: Floats) -> dict[str, float]:
    return dict(zip(("low", "high", "median"), map(float, ends), strict=True))


def price_of(model: Any, kind: OutcomeKind) -> dict[str, Any] | None:
    """Return the price of a calibrated worst group along the alpha of a link.

    None for outcomes with atoms, for which the price depends on the forecasts.

    Prices are those of a calibrated base model (method: links). The link is that of the model,
    whose own alpha is `chosen`; a model without a link gets the entropic one.
    """
    if kind is not OutcomeKind.CONTINUOUS:
        return None
    link = _link_of(model)
    # copies: a change of an audit's numbers must not change the cache
    curve = [dict(point) for point in _price_curve(Entropic if link is None else type(link))]
    name = Entropic.name if link is None else link.name
    return {
        "link": name,
        "mass": PRICE_MASS,
        "curve": curve,
        "chosen": None if link is None else _priced(link),
    }


def _link_of(model: Any) -> Link | None:
    if isinstance(model, Forecast):
        distribution = model.distribution
        return distribution.link if isinstance(distribution, Randomized) else None
    if model is None:
        return None
    # imported here, as forecasters import scikit-learn, which an audit of forecasts does not need
    from evenhand.forecasters import RandomizedRegressor

    return make_link(model.link, model.alpha) if isinstance(model, RandomizedRegressor) else None


# a curve depends on the link alone: 13 links with an integral each are computed once
@lru_cache
def _price_curve(family: type[Link]) -> tuple[dict[str, float], ...]:
    return tuple(_priced(family(float(alpha))) for alpha in PRICE_ALPHAS)


def _priced(link: Link) -> dict[str, float]:
    return {
        "alpha": link.alpha,
        "group_error": link.group_error(PRICE_MASS),
        "price": float(link.price),
    }
