"""Impossibility of proving individual calibration of deterministic forecasts (paper, section 3).

Two worlds are constructed from a forecast. In the calibrated world each outcome is drawn from its
forecast. In the sliced world the forecast distribution is cut into slices of equal probability, and
all outcomes of a person come from the same slice. If each person is observed once, both worlds give
the same data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from evenhand import Forecast, InputError, __version__
from evenhand.calibration import calibration_error, pathwise_errors
from evenhand.draws import fresh, generator
from reproduction.game import Floats
from reproduction.study import (
    BLUE,
    ORANGE,
    Exhibit,
    Row,
    new_panels,
    share_legend,
    tidy,
    write_study,
)
from reproduction.toy import FEATURE, HIDDEN, LEVEL, OUTCOME, padded, small_network

World = Literal["calibrated", "sliced"]
WORLDS: tuple[World, World] = ("calibrated", "sliced")
RandomState = int | np.random.Generator | None

SLICES = (1, 3, 11, 1001)
N_PEOPLE = 2000
N_SEEN = 200
N_DATASETS = 1000
"""Data sets from each world, of how many people each, for the test of calibration."""


@dataclass(frozen=True)
class TwoWorlds:
    """Two distributions of outcomes for the same people, with data compatible with both.

    Parameters
    ----------
    forecast : Forecast
        Deterministic forecast of `n` people.
    outcomes : ndarray of shape (n,)
        The data: one outcome per person, in units of `y`.
    slices : int
        Number of slices of equal probability. With one slice the worlds are the same; with many, a
        person's outcome is nearly constant in the sliced world.

    Examples
    --------
    The observed outcome is the forecast's median, so in the sliced world all outcomes have PITs
    from 0.4 to 0.6:

    >>> worlds = TwoWorlds(Forecast.from_normal([0.0], [1.0]), np.array([0.0]), slices=5)
    >>> worlds.pit_quantiles("sliced", 4).round(3)
    array([[0.425, 0.475, 0.525, 0.575]])
    >>> worlds.pit_quantiles("calibrated", 4).round(3)
    array([[0.125, 0.375, 0.625, 0.875]])
    """

    forecast: Forecast
    outcomes: Floats
    slices: int

    @property
    def slice_of(self) -> NDArray[np.intp]:
        """Slice of each person's observed outcome, shape (n,), counted from 0."""
        cells = np.floor(self.forecast.pit(self.outcomes) * self.slices)
        # a PIT rounded to 1 belongs to the last slice
        return np.clip(cells, 0, self.slices - 1).astype(np.intp)

    def outcomes_at(self, world: World, share: Floats) -> Floats:
        """Return quantiles of each person's outcomes at levels `share`, shape (n, m) or (1, m)."""
        if world == "sliced":
            # uniform within the person's slice; over people all slices are equally frequent
            share = (self.slice_of[:, None] + share) / self.slices
        return self.forecast.distribution.expand().ppf(share)

    def draw(self, world: World, random_state: RandomState = None) -> Floats:
        """Draw new outcomes of the same people, shape (n,)."""
        share = fresh((self.forecast.n_samples, 1), generator(random_state))
        return self.outcomes_at(world, share)[:, 0]

    def pit_quantiles(self, world: World, n_levels: int) -> Floats:
        """Return PITs at evenly spaced quantiles of each person's outcomes, shape (n, n_levels)."""
        share = (np.arange(n_levels)[None, :] + 0.5) / n_levels
        return self.forecast.distribution.expand().cdf(self.outcomes_at(world, share))


def two_worlds(
    forecast: Forecast,
    y: ArrayLike | None = None,
    *,
    slices: int = 1001,
    random_state: RandomState = None,
) -> TwoWorlds:
    """Build two worlds with the same data; a deterministic forecast is calibrated in only one.

    Parameters
    ----------
    forecast : Forecast
        Deterministic forecast with a continuous CDF for each of `n` people.
    y : array-like of shape (n,), optional
        The data; drawn from the forecast if None.
    slices : int, default 1001
        Number of slices of equal probability in the second world.
    random_state : int, generator or None
        Source of the data.

    Returns
    -------
    TwoWorlds

    Raises
    ------
    InputError
        If the forecast is randomized.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, propositions of section 3 and appendix; their second world is the
    limit of many slices.

    Examples
    --------
    >>> worlds = two_worlds(Forecast.from_normal([0.0, 5.0], [1.0, 2.0]), y=[0.1, 9.0])
    >>> floors = measure_floors(worlds)
    >>> round(floors.calibrated_error, 3), bool(floors.least_error > 0.249)
    (0.0, True)
    """
    if forecast.is_randomized:
        raise InputError(
            "forecast is randomized, but the two worlds exist only for deterministic forecasts;"
            " pass a forecast without draws"
        )
    outcomes = forecast.sample(random_state) if y is None else np.asarray(y, dtype=np.float64)
    return TwoWorlds(forecast, outcomes, slices)


@dataclass(frozen=True)
class Floors:
    """Calibration errors of a forecast in each of the two worlds.

    Parameters
    ----------
    calibrated_error, calibrated_variation : float
        Largest distance of a person's PITs from uniform in the calibrated world: W1 and total
        variation.
    least_error, mean_error : float
        Minimum and mean W1 over people in the sliced world; the limit for many slices is at least
        1/4.
    least_variation : float
        Minimum total variation over people in the sliced world; the limit is 1.
    half_mass, half_error : float
        Size and W1 error, in the sliced world, of the larger of two groups: people with PITs of at
        least 1/2, and the others. Its size is at least 1/2, and its error at least 1/8 in the
        limit.
    average_error : float
        Overall W1 error in the sliced world, the only one that data can show.
    """

    calibrated_error: float
    calibrated_variation: float
    least_error: float
    mean_error: float
    least_variation: float
    half_mass: float
    half_error: float
    average_error: float


def measure_floors(worlds: TwoWorlds) -> Floors:
    """Measure both worlds from at least 200 PITs per person, and at least one per slice.

    The measured W1 of a uniform distribution is `1 / (4 m)` from `m` PITs, not 0.

    Examples
    --------
    >>> floors = measure_floors(two_worlds(Forecast.from_normal([0.0], [1.0]), y=[0.0], slices=5))
    >>> round(floors.least_error, 3), round(floors.least_variation, 3)
    (0.2, 0.8)
    """
    # a multiple of the number of slices, so that uniform PITs fill the slices evenly
    n_levels = worlds.slices * -(-200 // worlds.slices)
    right, wrong = (worlds.pit_quantiles(world, n_levels) for world in ("calibrated", "sliced"))
    errors = pathwise_errors(wrong)
    # the PITs of each half are on one side of 1/2, so its error is large
    upper = wrong.mean(axis=-1) >= 0.5
    half = upper if 2 * upper.sum() >= upper.size else ~upper
    return Floors(
        calibrated_error=float(pathwise_errors(right).max()),
        calibrated_variation=float(_total_variation(right, worlds.slices).max()),
        least_error=float(errors.min()),
        mean_error=float(errors.mean()),
        least_variation=float(_total_variation(wrong, worlds.slices).min()),
        half_mass=float(half.mean()),
        half_error=calibration_error(wrong[half]),
        average_error=calibration_error(wrong),
    )


def theory_of_floors(slices: int) -> tuple[float, float, float]:
    """Return the smallest possible W1, total variation and W1 of the larger half in a sliced world.

    A uniform distribution on an interval of length `1 / slices` has total variation `1 - 1 /
    slices`. Its W1 is at least a quarter of that, which is attained for the middle interval of an
    odd number of slices. The PITs of the larger half are at least `(1 - 1 / slices) / 2`, or at
    most one minus that.

    Examples
    --------
    >>> theory_of_floors(2)
    (0.125, 0.5, 0.03125)
    """
    rest = 1 - 1 / slices
    return rest / 4, rest, rest**2 / 8


def _total_variation(pit: Floats, cells: int) -> Floats:
    """Return the total variation between each person's PITs and uniform.

    It is exact for densities that are constant on cells.
    """
    # PITs lie in the middle of finer cells, so rounding errors cannot move them to another cell
    cell = np.clip(np.floor(pit * cells), 0, cells - 1).astype(np.intp)
    n, m = pit.shape
    flat = cell + cells * np.arange(n)[:, None]
    share = np.bincount(flat.ravel(), minlength=n * cells).reshape(n, cells) / m
    return np.asarray(np.abs(share - 1 / cells).sum(axis=-1) / 2)


def share_of_yes(
    worlds: TwoWorlds,
    verifier: Callable[[Forecast, Floats], bool],
    *,
    n_seen: int,
    n_datasets: int = 1000,
    random_state: RandomState = None,
) -> dict[str, float]:
    """Return the share of data sets from each world that a verifier of calibration accepts.

    Parameters
    ----------
    worlds : TwoWorlds
        Both worlds; the sliced world is the same for all data sets.
    verifier : callable
        Function of the forecast of the observed people and their outcomes that returns whether the
        forecast is calibrated for each person.
    n_seen : int
        Number of people in a data set, drawn without replacement, so that each is observed once.
    n_datasets : int, default 1000
        Number of data sets from each world.
    random_state : int, generator or None
        Source of the data.

    Returns
    -------
    dict of str to float
        Share of accepted data sets in the worlds "calibrated" and "sliced".

    Examples
    --------
    >>> worlds = two_worlds(Forecast.from_normal(np.zeros(50), np.ones(50)), random_state=0)
    >>> share_of_yes(worlds, lambda forecast, y: True, n_seen=10, n_datasets=5, random_state=0)
    {'calibrated': 1.0, 'sliced': 1.0}
    """
    random = generator(random_state)
    n = worlds.forecast.n_samples

    def is_accepted(world: World) -> bool:
        # only if each person is observed once do both worlds give the same data
        seen = random.choice(n, n_seen, replace=False)
        part = TwoWorlds(worlds.forecast[seen], worlds.outcomes[seen], worlds.slices)
        return bool(verifier(part.forecast, part.draw(world, random)))

    return {w: float(np.mean([is_accepted(w) for _ in range(n_datasets)])) for w in WORLDS}


# --- the study: two worlds around the small network of the toy study


def run(out: Path, seed: int = 0) -> str:
    """Run the study, write its folder and return the text to print."""
    random = np.random.default_rng([seed, 3])
    network = small_network(seed)
    x = np.sort(random.uniform(size=N_PEOPLE))
    forecast = network.forecast(x[:, None])
    rows: list[Row] = []
    for slices in SLICES:
        worlds = two_worlds(forecast, slices=slices, random_state=random)
        yes = share_of_yes(
            worlds, looks_calibrated, n_seen=N_SEEN, n_datasets=N_DATASETS, random_state=random
        )
        theory = zip(("w1_floor", "tv_floor", "half_floor"), theory_of_floors(slices), strict=True)
        rows.append(
            {"slices": slices, **asdict(measure_floors(worlds)), **dict(theory), "yes": yes}
        )
    places = (np.arange(64) + 0.5) / 64
    picture = two_worlds(network.forecast(places[:, None]), slices=11, random_state=random)
    most = rows[-1]
    lead = [
        "If each person is observed once, no data can distinguish a world in which a deterministic"
        f" network with {HIDDEN[0]} hidden units is calibrated for each person from one in which"
        f" its error is at least {most['least_error']:.3f} for each person"
        f" ({most['least_variation']:.3f} in total variation) and {most['half_error']:.3f} in one"
        " half of the people: its PITs pass a test of uniformity in"
        f" {most['yes']['calibrated']:.1%} of data sets from the first world and"
        f" {most['yes']['sliced']:.1%} from the second."
    ]
    settings = {"seed": seed, "version": __version__, "n_seen": N_SEEN, "n_datasets": N_DATASETS}
    results = {"study": "impossibility", "settings": settings, "floors": rows}
    exhibits = [_picture_exhibit(places, picture), _floors_exhibit(rows)]
    return write_study(out, "Calibration that no data can prove", lead, exhibits, results)


def looks_calibrated(forecast: Forecast, y: Floats) -> bool:
    """Return whether the PITs pass a Kolmogorov-Smirnov test at the 5% level."""
    return bool(stats.kstest(forecast.pit(y), "uniform").pvalue > 0.05)


def _picture_exhibit(x: Floats, worlds: TwoWorlds) -> Exhibit:
    text = (
        "Left: each outcome is drawn from the deterministic network's forecast. Right: the"
        f" forecast distribution is cut into {worlds.slices} slices of equal probability, and"
        " all outcomes of a person come from one slice, which was chosen once at random. If each"
        " person is observed once, both worlds give the same data."
    )
    alt = (
        "Two panels with the same points: on the left with long bars that form a band, on the right"
        " with scattered short bars."
    )
    title = "Two worlds, the same data"
    return Exhibit("worlds", title, text, draw=lambda: plot_two_worlds(x, worlds), alt=alt)


def _floors_exhibit(rows: list[Row]) -> Exhibit:
    table = pd.DataFrame(
        {
            "slices": row["slices"],
            "smallest W1 of a person": row["least_error"],
            "lower bound of W1": row["w1_floor"],
            "smallest total variation": row["least_variation"],
            "total variation in theory": row["tv_floor"],
            "W1 of the larger half": row["half_error"],
            "lower bound for the half": row["half_floor"],
            "overall W1": row["average_error"],
            "passed, calibrated world": row["yes"]["calibrated"],
            "passed, sliced world": row["yes"]["sliced"],
        }
        for row in rows
    )
    text = (
        "Calibration errors of the deterministic network in the sliced world, and lower bounds for"
        " any deterministic forecaster, with limits 1/4, 1 and 1/8 for many slices. With one slice"
        " both worlds are the same. The two halves are the people with PITs of at least 1/2 and the"
        " others; the larger half contains a group of every size up to 1/2. The last columns are"
        " the shares of data sets whose PITs pass a Kolmogorov-Smirnov test at the 5% level, for"
        f" {N_DATASETS} data sets of {N_SEEN} people."
    )
    return Exhibit("floors", "Errors that no data can rule out", text, table)


def plot_two_worlds(x: Floats, worlds: TwoWorlds) -> Figure:
    """Draw the central 80% of each person's outcomes in both worlds, and every fourth outcome."""
    seen = np.arange(2, x.size, 4)
    ends = np.array([[(1 - LEVEL) / 2, (1 + LEVEL) / 2]])
    bars = {world: worlds.outcomes_at(world, ends).T for world in WORLDS}
    panels = new_panels((8.0, 3.6), 1, 2)
    limits = padded(np.concatenate([*bars.values(), worlds.outcomes[None, :]], axis=None))
    titles = ("Calibrated for each person", "Calibrated for no person")
    for axes, (low, high), title in zip(panels[0], bars.values(), titles, strict=True):
        label = "Central 80% of a person's outcomes in this world"
        axes.vlines(x, low, high, color=ORANGE, linewidth=2.4, label=label)
        style: Any = {"color": BLUE, "markeredgecolor": "white", "markersize": 6, "zorder": 3}
        axes.plot(x[seen], worlds.outcomes[seen], "o", label="Data (the same in both)", **style)
        axes.set(xlabel=FEATURE, xlim=(0, 1), ylim=limits)
        axes.set_title(title, loc="left", fontsize="medium")
        tidy(axes)
    panels[0, 0].set_ylabel(OUTCOME)
    return share_legend(panels[0, 0], 2, "lower")
