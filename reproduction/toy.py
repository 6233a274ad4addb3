"""Toy study: the paper's introduction on a task with a known true distribution.

The introduction's figure, a comparison of notions of calibration (the paper's figure 2), and the
effect of averaging over draws. Numbers are exact up to the resolution of their grids, except those
from random samples, which are described as such.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy import special

from evenhand import (
    Forecast,
    MixtureMLPRegressor,
    PAICRegressor,
    RecalibratedRegressor,
    __version__,
)
from evenhand.calibration import calibration_error, pathwise_errors
from evenhand.distributions import Normal, NormalMixture
from evenhand.draws import fresh, nodes
from evenhand.search import worst_group_curve
from reproduction.game import Floats
from reproduction.study import (
    BLUE,
    GREY,
    MASS,
    ORANGE,
    RED,
    Exhibit,
    Row,
    new_panels,
    share_legend,
    tidy,
    write_study,
)

NOISE = 0.1
"""Standard deviation of the outcome given x: small, as the paper assumes."""

HIDDEN = (4,)
"""Hidden units of the deterministic network: too few for both bumps, which it treats as noise."""

ALPHA = 0.05
LEVEL = 0.8
N_TRAIN = 1500
N_RECALIBRATION = 3000
N_PEOPLE = 50
N_GROUPS = 5
N_GRID = 400
N_LEVELS = 128
N_DRAWS = 128
WIDE = 100.0
"""Standard deviation of the trivial forecaster, in units of y; x has no effect in the limit."""

FEATURE = "Feature x (no unit)"
OUTCOME = "Outcome y (no unit)"


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


class Models(NamedTuple):
    """The small network, as trained, recalibrated overall and by group, and the paper's network."""

    small: Any
    recalibrated: Any
    by_group: Any
    paic: Any


def small_network(seed: int) -> Any:
    """Train one network with one normal component, which is too smooth for both bumps."""
    return MixtureMLPRegressor(
        1,
        1,
        hidden=HIDDEN,
        bins=False,
        dropout=0.0,
        weight_decay=0.0,
        learning_rate=1e-2,
        max_steps=1000,
        # on the CPU, so that a seed gives the same study on machines of one kind
        device="cpu",
        random_state=seed,
    ).fit(*draw_rows(N_TRAIN, np.random.default_rng([seed, 1])))


def train(seed: int) -> Models:
    """Train the networks, and learn the recalibration maps on held-out rows."""
    from sklearn.frozen import FrozenEstimator

    random = np.random.default_rng([seed, 1])
    small = small_network(seed)
    paic = PAICRegressor(ALPHA, dropout=0.0, device="cpu", random_state=seed)
    paic.fit(*draw_rows(N_TRAIN, random))  # the same rows
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


def introduction(models: Models, seed: int) -> Row:
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
    }


def miss_rate(forecast: Forecast, x: Floats) -> Floats:
    """Return the probability that the interval misses the outcome at each `x`, shape (n,)."""
    # closed form over outcomes, averaged over the grid of draws
    low, high = (end.reshape(x.size, -1) for end in forecast.interval(LEVEL))
    mean = truth(x)[:, None]
    inside = special.ndtr((high - mean) / NOISE) - special.ndtr((low - mean) / NOISE)
    return np.asarray(1 - inside.mean(axis=-1))


def compute_notions(models: Models) -> Row:
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


def run(out: Path, seed: int = 0) -> str:
    """Run the study, write its folder and return the text to print."""
    models = train(seed)
    settings = {"seed": seed, "version": __version__, "alpha": ALPHA}
    found: Row = {"introduction": introduction(models, seed), **compute_notions(models)}
    exhibits = [
        _introduction(found["introduction"]),
        Exhibit(
            "notions",
            "Notions of calibration, from the weakest to the strongest",
            "W1 distance of PITs to the uniform distribution, from 0 to 1/2, computed on grids with"
            f" a resolution of {found['resolution']:.1g}; smaller values do not differ from 0."
            f" Columns: overall; in the worst of {N_GROUPS} named parts of the range of x; in the"
            " worst fifth of x that a search from many starts finds; for each x over outcomes and"
            " draws, mean and maximum; and for each outcome over draws, mean. An error of 0 in one"
            " column implies an error of 0 in the columns before it. The price is the mean log"
            " score minus that of the true distribution, in nats. The small network is the"
            " deterministic network of the figure; randomized versions of it and of the true"
            f" distribution use the entropic link with alpha {ALPHA:g}. The paper's formula for the"
            " trivial forecaster has the opposite sign and gives one minus the draw.",
            pd.DataFrame(found["notions"]),
        ),
        Exhibit(
            "averaging",
            "Averaging over draws loses calibration",
            "The same randomized forecasters, with one draw per person and with forecasts averaged"
            " over draws. The average is deterministic, so its pathwise error is at least 1/4. It"
            " is also wider than the single forecasts: PITs concentrate around 1/2, and calibration"
            " on average is lost, too.",
            pd.DataFrame(found["averaged"]),
        ),
    ]
    title = "The paper's introduction, on a task with a known true distribution"
    return write_study(
        out, title, _lead(found), exhibits, {"study": "toy", "settings": settings, **found}
    )


def _lead(found: Row) -> list[str]:
    """Return sentences on the results."""
    row = {one["forecaster"]: one for one in found["notions"]}
    small, paper = row["Small network"], row["Paper's network"]
    worst = {name: max(share) for name, share in found["introduction"]["misses"].items()}
    one, many = (each for each in found["averaged"] if each["forecaster"] == "Paper's network")
    fifth = "worst fifth of x"
    return [
        (
            "The calibration error (W1 of PITs, from 0 to 1/2) of the deterministic network is"
            f" {small['average']:.3f} overall and {small[fifth]:.3f} in the worst fifth of x. At"
            f" the worst x its {LEVEL:.0%} prediction interval misses"
            f" {worst['Deterministic']:.0%} of the outcomes."
        ),
        (
            f"The error of the randomized forecaster (the paper's network, alpha {ALPHA:g}) is"
            f" {paper[fifth]:.3f} in its worst fifth of x, and its interval misses"
            f" {worst['Randomized']:.0%} of the outcomes at its worst x. Its log score is"
            f" {paper['price']:.2f} nats worse than that of the true distribution; for the"
            f" deterministic network the difference is {small['price']:.2f}."
        ),
        (
            "Averaging the forecasts of the paper's network over draws changes its pathwise error"
            f" from {one['pathwise']:.3f} to {many['pathwise']:.3f}, its error in the worst fifth"
            f" of x from {one[fifth]:.3f} to {many[fifth]:.3f} and its overall error from"
            f" {one['average']:.3f} to {many['average']:.3f}."
        ),
    ]


def _introduction(shown: Row) -> Exhibit:
    y = shown["y"]
    count = [int(((y < one["low"]) | (y > one["high"])).sum()) for one in shown["served"]]
    share = {name: misses.mean() for name, misses in shown["misses"].items()}
    spread = np.sqrt(y.size * (1 - LEVEL) * LEVEL)
    text = (
        f"{y.size} people in order of x, one outcome each, and their {LEVEL:.0%} prediction"
        f" intervals. The deterministic network has {HIDDEN[0]} hidden units, too few for both"
        " bumps of the true mean; the randomized forecaster is the paper's network with alpha"
        f" {ALPHA:g}. Both were trained on the same {N_TRAIN} rows. The intervals miss {count[0]}"
        f" (deterministic), {count[1]} and {count[2]} (randomized, two draws) of these people;"
        f" those of a calibrated forecaster miss {y.size * (1 - LEVEL):.0f} with a standard"
        f" deviation of {spread:.1f}. Over all x, outcomes and draws, the deterministic network"
        f" misses {share['Deterministic']:.1%} and the randomized forecaster"
        f" {share['Randomized']:.1%}. The deterministic network always misses the same people; for"
        " the randomized forecaster they depend on the draw."
    )
    alt = (
        "Four panels against x: intervals of a deterministic forecaster; intervals of a randomized"
        " forecaster for two draws; people whose outcomes lie outside are shaded; and the share of"
        " outcomes missed at each x, for both."
    )
    title = "Calibrated on average, and calibrated for each person"
    return Exhibit("introduction", title, text, draw=lambda: plot_introduction(shown), alt=alt)


def plot_introduction(shown: Row) -> Figure:
    """Draw intervals and missed people of both forecasters, and the share of outcomes missed."""
    panels = new_panels((8.0, 6.6), 2, 2)
    ends = [one[key] for one in shown["served"] for key in ("low", "high")]
    # the same scale in all panels, so that intervals can be compared
    limits = padded(np.concatenate([*ends, shown["y"]]))
    places = (panels[0, 0], panels[0, 1], panels[1, 1])
    for axes, served in zip(places, shown["served"], strict=True):
        _draw_served(axes, shown["x"], shown["y"], served)
        axes.set_ylim(*limits)
    axes = panels[1, 0]
    for (name, share), color, dash in zip(
        shown["misses"].items(), (RED, BLUE), ("-", "--"), strict=True
    ):
        axes.plot(shown["grid"], share, dash, color=color, linewidth=2, label=name)
    axes.axhline(1 - LEVEL, color=GREY, linestyle=":", linewidth=1.5, zorder=1, label="Nominal")
    axes.set(xlabel=FEATURE, ylabel="Outcomes missed (%)", xlim=(0, 1), ylim=(-0.02, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    axes.set_title("Share missed over outcomes and draws", loc="left", fontsize="medium")
    axes.legend(loc="upper center", edgecolor="none", framealpha=1, fontsize="small")
    tidy(axes)
    return share_legend(places[0], 3, "lower")


def _draw_served(axes: Axes, x: Floats, y: Floats, served: Row) -> None:
    """Draw intervals, medians and outcomes of people in order of x; missed people are marked."""
    missed = (y < served["low"]) | (y > served["high"])
    half = 1 / x.size / 2
    for i, place in enumerate(x[missed]):
        label = "Person whose outcome is missed" if i == 0 else None
        axes.axvspan(place - half, place + half, color=RED, alpha=0.22, linewidth=0, label=label)
    axes.vlines(x, served["low"], served["high"], color=ORANGE, linewidth=2.5, label="80% interval")
    axes.plot(x, served["median"], "_", color="#7a4f00", markersize=6, label="Median")
    for inside, marker, color, label in (
        (~missed, "o", BLUE, "Outcome inside"),
        (missed, "D", RED, "Outcome missed"),
    ):
        axes.plot(x[inside], y[inside], marker, color=color, markersize=4, label=label)
    axes.set(xlabel=FEATURE, ylabel=OUTCOME, xlim=(0, 1))
    title = f"{served['title']}: misses {missed.sum()} of {x.size}"
    axes.set_title(title, loc="left", fontsize="medium")
    tidy(axes)


def padded(values: Floats) -> tuple[float, float]:
    """Return the limits of an axis: the range of the values with a margin of 5% on each side."""
    low, high = float(values.min()), float(values.max())
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
