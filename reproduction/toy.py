"""Toy study: the paper's introduction on a task with a known true distribution.

The introduction's figure, a comparison of notions of calibration (the paper's figure 2), both
impossibility propositions, and the effect of averaging over draws. Numbers are exact up to the
resolution of their grids, except those from random samples, which are described as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from evenhand._validate import Floats
from evenhand._version import __version__
from evenhand.calibration import calibration_error, pathwise_errors
from evenhand.distributions import Normal, NormalMixture
from evenhand.draws import fresh, nodes
from evenhand.forecast import Forecast
from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor, RecalibratedRegressor
from evenhand.search import worst_group_curve
from reproduction.impossibility import (
    WORLDS,
    measure_floors,
    share_of_yes,
    theory_of_floors,
    two_worlds,
)
from reproduction.study import compute_parts, write_study
from reproduction.toy_exhibits import exhibits, lead

NOISE = 0.1
"""Standard deviation of the outcome given x: small, as the paper assumes."""

HIDDEN = (4,)
"""Hidden units of the deterministic network: too few for both bumps, which it treats as noise."""

ALPHA = 0.05
MASS = 0.2
LEVEL = 0.8
N_TRAIN = 1500
N_RECALIBRATION = 3000
N_PEOPLE = 50
N_GROUPS = 5
N_GRID = 400
N_LEVELS = 128
N_DRAWS = 128
N_SEEN = 200
N_DATASETS = 1000
SLICES = (1, 3, 11, 1001)
WIDE = 100.0
"""Standard deviation of the trivial forecaster, in units of y; x has no effect in the limit."""


def truth(x: Floats) -> Floats:
    """Return the mean outcome at `x` in [0, 1]: a line with one upward and one downward bump."""

    def bump(centre: float) -> Floats:
        return np.asarray(0.8 * np.exp(-(((x - centre) / 0.06) ** 2)))

    return np.asarray(2 * x + bump(0.28) - bump(0.75))


def draw_rows(n: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw `n` people: uniform features of shape (n, 1), and outcomes of shape (n,)."""
    x = random.uniform(size=n)
    return x[:, None], truth(x) + NOISE * random.normal(size=n)


def group_of(X: Any) -> Any:
    """Return the named group of each row: the number of its equal part of the range of x."""
    return np.clip(np.floor(np.asarray(X)[:, 0] * N_GROUPS), 0, N_GROUPS - 1).astype(int)


@dataclass(frozen=True)
class Models:
    """The small network, as trained, recalibrated overall and by group, and the paper's network."""

    small: Any
    recalibrated: Any
    by_group: Any
    paic: Any


def train(seed: int) -> Models:
    """Train the networks, and learn the recalibration maps on held-out rows."""
    from sklearn.frozen import FrozenEstimator

    # each part of the study has its own random stream
    random = np.random.default_rng([seed, 1])
    X, y = draw_rows(N_TRAIN, random)
    # on the CPU, so that a seed gives the same study on machines of one kind
    shared: dict[str, Any] = {"device": "cpu", "random_state": seed}
    # one network with one normal component: Gaussian regression, too smooth for the rare stretch
    small = MixtureMLPRegressor(
        1,
        1,
        hidden=HIDDEN,
        bins=False,
        dropout=0.0,
        weight_decay=0.0,
        learning_rate=1e-2,
        max_steps=1000,
        **shared,
    ).fit(X, y)
    paic = PAICRegressor(ALPHA, dropout=0.0, **shared).fit(X, y)
    X_held, y_held = draw_rows(N_RECALIBRATION, random)
    recalibrated, by_group = (
        RecalibratedRegressor(FrozenEstimator(small), by=by, random_state=seed).fit(X_held, y_held)
        for by in (None, group_of)
    )
    return Models(small, recalibrated, by_group, paic)


def forecasts(models: Models, X: Floats, r: Floats) -> dict[str, Forecast]:
    """Return the forecasts of each forecaster; randomized ones at the draws `r`, shape (1, m)."""
    n = X.shape[0]
    small = models.small.forecast(X)
    right = Forecast.from_normal(truth(X[:, 0]), np.full(n, NOISE))
    # the marginal distribution is a mixture of the conditional distributions over x
    places = truth((np.arange(N_GRID) + 0.5) / N_GRID)
    marginal = NormalMixture(
        *(np.broadcast_to(v, (n, N_GRID)) for v in (1 / N_GRID, places, NOISE))
    )
    # the paper has the opposite sign, which gives 1 - r (method: errata)
    trivial = Normal(np.broadcast_to(-WIDE * special.ndtri(r), (n, r.size)), WIDE)
    return {
        "True conditional distribution": right,
        "Constant marginal distribution": Forecast(marginal),
        "Small network": small,
        "Small network, recalibrated on average": models.recalibrated.forecast(X),
        "Small network, recalibrated by group": models.by_group.forecast(X),
        "Small network, randomized": small.randomized(ALPHA, "entropic", r),
        "Paper's network": models.paic.forecast(X, r=r),
        "True distribution, randomized": right.randomized(ALPHA, "entropic", r),
        "Trivial forecaster": Forecast(trivial, r),
    }


def pits_of(forecast: Forecast, x: Floats) -> tuple[Floats, float]:
    """Return PITs at true quantiles of the outcome, shape (n, outcomes, draws), and the price.

    The price is the mean log score minus that of the true distribution, in nats.
    """
    score = special.ndtri(nodes(N_LEVELS)[0])
    outcomes = [truth(x) + NOISE * z for z in score]
    pit = np.stack([forecast.cdf(y).reshape(x.size, -1) for y in outcomes], axis=1)
    # of the same outcomes, so that grid errors cancel in the price
    entropy = float((score**2).mean()) / 2 + math.log(NOISE * math.sqrt(2 * math.pi))
    score_given = float(np.mean([forecast.logpdf(y).mean() for y in outcomes]))
    # without rounding errors, so that the true distribution has price 0
    return pit, round(-score_given - entropy, 12)


def measure(pit: Floats, groups: Any) -> dict[str, float]:
    """Return the W1 error of each notion of calibration, from the weakest to the strongest.

    Parameters
    ----------
    pit : ndarray of shape (n, outcomes, draws)
        PITs on even grids of x, of the outcome given x, and of the draw.
    groups : ndarray of shape (n,)
        Labels of the named groups.
    """
    n, _, m = pit.shape
    flat = pit.reshape(n, -1)
    own = pathwise_errors(flat)
    # fewer quantiles of each x for the search; the error of its group uses all
    step = flat.shape[1] // N_LEVELS
    rising = np.sort(flat, axis=-1)[:, step // 2 :: step]
    worst = worst_group_curve(rising, MASS, random_state=0).rows[0]
    return {
        "average": calibration_error(flat),
        "worst named group": max(
            calibration_error(flat[groups == group]) for group in np.unique(groups)
        ),
        "worst fifth of x": calibration_error(flat[worst]),
        "mean over x": float(own.mean()),
        "worst x": float(own.max()),
        "pathwise": float(pathwise_errors(pit.reshape(-1, m)).mean()),
    }


NOTIONS = ("average", "worst named group", "worst fifth of x", "mean over x", "worst x", "pathwise")


def introduction(models: Models, seed: int) -> dict[str, Any]:
    """Return intervals of both forecasters, and the share of outcomes missed at every x."""
    random = np.random.default_rng([seed, 2])
    x = (np.arange(N_PEOPLE) + 0.5) / N_PEOPLE
    y = truth(x) + NOISE * random.normal(size=N_PEOPLE)
    served = [("Deterministic", models.small.forecast(x[:, None]))]
    served += [
        (f"Randomized, {which} draw", models.paic.forecast(x[:, None], r=fresh(N_PEOPLE, random)))
        for which in ("first", "second")
    ]
    grid = (np.arange(N_GRID) + 0.5) / N_GRID
    return {
        "x": x,
        "y": y,
        "served": [
            {"title": title, "median": forecast.ppf(0.5)}
            | dict(zip(("low", "high"), forecast.interval(LEVEL), strict=True))
            for title, forecast in served
        ],
        "grid": grid,
        "misses": {
            "Deterministic": miss_rate(models.small.forecast(grid[:, None]), grid),
            "Randomized": miss_rate(models.paic.forecast(grid[:, None], r=nodes(N_DRAWS)), grid),
        },
        "promised": 1 - LEVEL,
    }


def miss_rate(forecast: Forecast, x: Floats) -> Floats:
    """Return the probability that the interval misses the outcome at each `x`, shape (n,)."""
    # closed form over outcomes, averaged over the grid of draws
    low, high = (end.reshape(x.size, -1) for end in forecast.interval(LEVEL))
    mean = truth(x)[:, None]
    inside = special.ndtr((high - mean) / NOISE) - special.ndtr((low - mean) / NOISE)
    return np.asarray(1 - inside.mean(axis=-1))


def compute_notions(models: Models) -> dict[str, Any]:
    """Return errors of each forecaster, also with averages over draws for randomized ones."""
    x = (np.arange(N_GRID) + 0.5) / N_GRID
    groups = group_of(x[:, None])
    rows = []
    averaged = []
    for name, forecast in forecasts(models, x[:, None], nodes(N_DRAWS)).items():
        pit, price = pits_of(forecast, x)
        row = {"forecaster": name, **measure(pit, groups), "price": price}
        rows.append(row)
        if forecast.is_randomized and name != "Trivial forecaster":
            without = measure(pit.mean(axis=-1, keepdims=True), groups)
            averaged.append(
                {"forecaster": name, "served": "one draw", **{key: row[key] for key in NOTIONS}}
            )
            averaged.append({"forecaster": name, "served": "average of draws", **without})
    return {"notions": rows, "averaged": averaged, "resolution": 1 / (4 * min(N_LEVELS, N_DRAWS))}


def looks_calibrated(forecast: Forecast, y: Floats) -> bool:
    """Return whether the PITs pass a Kolmogorov-Smirnov test at the 5% level."""
    return bool(stats.kstest(forecast.pit(y), "uniform").pvalue > 0.05)


def compute_worlds(models: Models, seed: int) -> dict[str, Any]:
    """Return measures of two worlds around the small network, by number of slices."""
    random = np.random.default_rng([seed, 3])
    x = np.sort(random.uniform(size=2000))
    forecast = models.small.forecast(x[:, None])
    rows = []
    for slices in SLICES:
        worlds = two_worlds(forecast, slices=slices, random_state=random)
        yes = share_of_yes(
            worlds, looks_calibrated, n_seen=N_SEEN, n_datasets=N_DATASETS, random_state=random
        )
        theory = dict(
            zip(("w1_floor", "tv_floor", "half_floor"), theory_of_floors(slices), strict=True)
        )
        rows.append({"slices": slices, **asdict(measure_floors(worlds)), **theory, "yes": yes})
    return {"floors": rows, "picture": picture(models, random)}


def picture(models: Models, random: np.random.Generator) -> dict[str, Any]:
    """Return the central 80% of each person's outcomes in both worlds, and the observed data."""
    x = (np.arange(64) + 0.5) / 64
    seen = np.arange(2, 64, 4)
    worlds = two_worlds(models.small.forecast(x[:, None]), slices=11, random_state=random)
    ends = np.array([[(1 - LEVEL) / 2, (1 + LEVEL) / 2]])
    values: dict[str, Any] = {
        "x": x,
        "seen": seen,
        "y": worlds.outcomes[seen],
        "slices": worlds.slices,
    }
    for world in WORLDS:
        low, high = worlds.outcomes_at(world, ends).T
        values[world] = {"low": low, "high": high}
    return values


def settings(seed: int) -> dict[str, Any]:
    """Return the settings that determine the results."""
    return {
        "seed": seed,
        "version": __version__,
        "alpha": ALPHA,
        "mass": MASS,
        "level": LEVEL,
        "noise": NOISE,
        "hidden": HIDDEN[0],
        "n_train": N_TRAIN,
        "n_recalibration": N_RECALIBRATION,
        "n_groups": N_GROUPS,
        "grids": {"x": N_GRID, "outcomes": N_LEVELS, "draws": N_DRAWS},
        "n_seen": N_SEEN,
        "n_datasets": N_DATASETS,
    }


def compute(**task: Any) -> dict[str, Any]:
    """Compute the study from its settings."""
    seed = task["seed"]
    models = train(seed)
    return {
        "introduction": introduction(models, seed),
        **compute_notions(models),
        **compute_worlds(models, seed),
    }


def run(out: Path, seed: int, inform: Callable[[str], None]) -> str:
    """Rerun the paper's introduction on a task with a known truth, and write the study.

    Parameters
    ----------
    out : Path
        Folder of the study; results stored in it for the same settings are not computed again.
    seed : int
        Seed of the rows, the networks and the draws.
    inform : callable
        Function that prints progress messages.

    Returns
    -------
    str
        Results as sentences, and the place of the files.
    """
    task = settings(seed)
    inform("toy: training the networks and measuring the forecasters, about a minute ...")
    (values,) = compute_parts(compute, [task], out / "parts")
    values = {"study": "toy", "settings": task, **values}
    found = lead(values)
    title = "The paper's introduction, on a task with a known true distribution"
    write_study(out, title, found, exhibits(values), values)
    return "\n".join([*found, f"Written to {out}; open {out / 'index.html'}."])
