"""Training and measures on one split of Communities and Crime, for all values of alpha."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd

from evenhand._validate import DiscreteOutcomeWarning, Floats
from evenhand.calibration import calibration_error, cell_log_score, crps_and_spread, log_score
from evenhand.certificates import certify_pit
from evenhand.datasets import load_crime
from evenhand.draws import jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor
from evenhand.links import make_link
from evenhand.search import find_group, null_curve, scan_groups, worst_group_curve
from reproduction.sweep import (
    LIKELIHOOD,
    LINK,
    MASS,
    N_DRAWS,
    NETWORK,
    PAIC,
    Row,
    apply_map,
    learn_map,
)

Protocol = Literal["published", "apart"]

PROTOCOLS: tuple[Protocol, ...] = ("published", "apart")
N_TEST = 500
N_VALIDATION = 220
STEP = 0.01
"""Rounding step of the outcome: PITs are spread over its cells, and the cell log score also
measures sharpness."""

MASSES = tuple(np.linspace(0.04, 1.0, 25).round(2).tolist())
"""Group sizes of the figures."""

NULL_SIMULATIONS = 20

LINKED = "link around an ensemble"


def measure_split(
    seed: int,
    protocol: Protocol,
    alphas: list[float],
    link_alphas: list[float],
    max_steps: int,
    *,
    data: str | None = None,
    version: str = "",
) -> dict[str, Any]:
    """Train the forecasters of one split and measure them.

    Parameters
    ----------
    seed : int
        Seed of the split, the training and the draws.
    protocol : {"published", "apart"}
        "published": the 500 test rows are also used for early stopping, and recalibration uses the
        training rows. "apart": 220 other rows are used for early stopping and recalibration, and
        the 500 test rows only for measures.
    alphas, link_alphas : list of float
        Values of alpha of the paper's network, and of the link around the ensemble (only with
        "apart").
    max_steps : int
        Largest number of training steps.
    data : str, optional
        Path of communities.data.
    version : str
        Version of the code: stored parts of other versions are computed again.

    Returns
    -------
    dict
        `rows`, one per forecaster, alpha and recalibration.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        return {"rows": list(_rows(Split(seed, protocol, data), alphas, link_alphas, max_steps))}


class Split:
    """Rows of one split, and a random stream for each purpose."""

    def __init__(self, seed: int, protocol: Protocol, data: str | None) -> None:
        crime = load_crime(data)
        order = np.random.default_rng(seed).permutation(len(crime.y))
        self.table = crime.X
        self.X, self.y = crime.X.to_numpy(dtype=np.float64), crime.y.to_numpy(dtype=np.float64)
        self.seed = seed
        self.protocol = protocol
        self.random = {
            name: np.random.default_rng([seed, i])
            for i, name in enumerate(("draws", "few", "recalibrate", "spread"), start=1)
        }
        self.test = order[:N_TEST]
        if protocol == "published":
            self.learn, self.stop, self.recalibrate = order[N_TEST:], self.test, order[N_TEST:]
        else:
            self.stop = self.recalibrate = order[N_TEST : N_TEST + N_VALIDATION]
            self.learn = order[N_TEST + N_VALIDATION :]

    @property
    def features(self) -> pd.DataFrame:
        """Features of the test rows."""
        return self.table.iloc[self.test]


def _rows(
    split: Split, alphas: list[float], link_alphas: list[float], max_steps: int
) -> Iterator[Row]:
    X = split.X
    y = split.y
    learn = split.learn
    stop = split.stop
    random = split.random
    # many draws for PITs, few for CRPS and spread, which are tabulated for each forecast
    wide = jittered(N_TEST, N_DRAWS, random["draws"])
    few = jittered(N_TEST, 4, random["few"])
    recalibration_draws = jittered(len(split.recalibrate), N_DRAWS, random["recalibrate"])
    networks = PAICRegressor.path(
        X[learn],
        y[learn],
        alphas,
        X_val=X[stop],
        y_val=y[stop],
        random_state=split.seed,
        max_steps=max_steps,
        device="cpu",
    )
    for model in networks:
        seen = model.forecast(X[split.recalibrate], recalibration_draws)
        # one map for all draws, because it acts on PITs
        learned = learn_map(
            seen.pit(y[split.recalibrate], step=STEP, random_state=random["spread"])
        )
        for recalibrated in (False, True):
            many, some = (model.forecast(X[split.test], r) for r in (wide, few))
            if recalibrated:
                many, some = (apply_map(forecast, learned) for forecast in (many, some))
            yield _about(NETWORK, model.alpha, recalibrated) | _measured(
                split, model.alpha, many, some, wide
            )
    if split.protocol == "apart":
        yield from _linked_rows(split, link_alphas, max_steps, wide, few)


def _linked_rows(
    split: Split, alphas: list[float], max_steps: int, wide: Floats, few: Floats
) -> Iterator[Row]:
    """Yield the measures of links around one deterministic ensemble."""
    X = split.X
    y = split.y
    learn = split.learn
    stop = split.stop
    # the ensemble holds out its own rows for early stopping, so it gets both parts
    base = MixtureMLPRegressor(random_state=split.seed, max_steps=max_steps, device="cpu").fit(
        np.vstack([X[learn], X[stop]]), np.concatenate([y[learn], y[stop]])
    )
    base_forecast = base.forecast(X[split.test])
    own = float(cell_log_score(base_forecast, y[split.test], STEP).mean())
    for alpha in alphas:
        many, some = (base_forecast.randomized(alpha, LINK, r) for r in (wide, few))
        about = _about(LINKED, alpha, False) | {
            "base_plus_price": own + make_link(LINK, alpha).price
        }
        yield about | _measured(split, alpha, many, some, wide)


def _about(forecaster: str, alpha: float, recalibrated: bool) -> Row:
    return {"forecaster": forecaster, "alpha": float(alpha), "recalibrated": recalibrated}


def _measured(split: Split, alpha: float, wide: Forecast, few: Forecast, draws: Floats) -> Row:
    """Return all measures of one forecaster at one alpha."""
    y = split.y[split.test]
    # the same random spreading for all forecasters, so that comparisons are paired
    pit = wide.pit(y, step=STEP, random_state=np.random.default_rng([split.seed, 10]))
    # one random cell per row gives a single uniform draw
    once = pit[
        np.arange(N_TEST), np.random.default_rng([split.seed, 11]).integers(N_DRAWS, size=N_TEST)
    ]
    scan = scan_groups(pit, split.features, random_state=split.seed)
    worst = scan.iloc[int(scan["error"].argmax())]
    scores, spreads = crps_and_spread(few, y)
    row = {
        "nll": log_score(wide, y).mean(),
        "cell_log_score": cell_log_score(wide, y, STEP).mean(),
        "crps": scores.mean(),
        "mean_std": spreads.mean(),
        "average_error": calibration_error(pit),
        "worst_errors": worst_group_curve(pit, MASSES, random_state=0).errors,
        "as_published": errors_as_published(pit, once),
        "interpretable_error": worst["error"],
        "interpretable_group": worst["group"],
        "interpretable_features": list(worst["features"]),
        "interpretable_direction": worst["direction"],
        "interpretable_p": worst["p_adjusted"],
        "interpretable_as_published": scan_groups(once, split.features)["error"].max(),
    }
    # rows used for early stopping cannot certify
    if split.protocol == "apart":
        row["certified_error"] = certify_pit(pit, draws).group_error(MASS)
    if alpha in (PAIC, LIKELIHOOD) and split.protocol == "apart":
        learned = find_group(pit, split.features, MASS, random_state=split.seed)
        row |= {"learned_error": learned.error, "learned_low": learned.low}
    return row


def errors_as_published(pit: Floats, once: Floats) -> Floats:
    """Return worst-group errors as in the published code: by mean PIT, one draw (method: errata).

    The published code takes the larger error of the rows with the lowest and with the highest mean
    PITs.
    """
    order = np.argsort(pit.mean(axis=1))
    sizes = [max(round(mass * len(pit)), 1) for mass in MASSES]
    return np.array(
        [
            max(calibration_error(once[order[:k]]), calibration_error(once[order[-k:]]))
            for k in sizes
        ]
    )


def simulate_null(alpha: float, seed: int, version: str = "") -> dict[str, Any]:
    """Return the null distribution of worst-group errors for calibrated forecasts of this alpha."""
    if alpha < 1:
        pit = np.full((N_TEST, N_DRAWS), 0.5)
        link = make_link(LINK, alpha)
        null = null_curve(pit, MASSES, link=link, n_simulations=NULL_SIMULATIONS, random_state=seed)
    else:
        null = null_curve(
            np.full(N_TEST, 0.5), MASSES, n_simulations=NULL_SIMULATIONS, random_state=seed
        )
    return {"alpha": alpha, "low": null.low, "mean": null.mean, "high": null.high}
