"""Impossibility of proving individual calibration of deterministic forecasts (paper, section 3).

Two worlds are constructed from a forecast. In the calibrated world each outcome is drawn from its
forecast. In the sliced world the forecast distribution is cut into slices of equal probability, and
all outcomes of a person come from the same slice. If each person is observed once, both worlds give
the same data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    bad_input,
    check_choice,
    check_count,
    check_rows,
)
from evenhand.calibration import calibration_error, pathwise_errors
from evenhand.draws import RandomState, fresh, generator
from evenhand.forecast import Forecast

World = Literal["calibrated", "sliced"]
WORLDS: tuple[World, World] = ("calibrated", "sliced")


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
    def slice_of(self) -> Ints:
        """Slice of each person's observed outcome, shape (n,), counted from 0."""
        cells = np.floor(self.forecast.pit(self.outcomes) * self.slices)
        # a PIT rounded to 1 belongs to the last slice
        return np.clip(cells, 0, self.slices - 1).astype(np.intp)

    def outcomes_at(self, world: World, share: Floats) -> Floats:
        """Return quantiles of each person's outcomes at levels `share`, shape (n, m) or (1, m)."""
        check_choice("world", world, WORLDS)
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
        If the forecast is randomized, `y` has another length, or `slices` is no positive integer.

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
    check_count("slices", slices)
    outcomes = (
        forecast.sample(random_state) if y is None else check_rows("y", y, forecast.n_samples)
    )
    return TwoWorlds(forecast, outcomes, int(slices))


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
    rest = 1 - 1 / check_count("slices", slices)
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
    if check_count("n_seen", n_seen) > n:
        raise bad_input(
            "n_seen",
            f"be at most the number of people ({n})",
            n_seen,
            "each person is observed once",
        )

    def is_accepted(world: World) -> bool:
        # only if each person is observed once do both worlds give the same data
        seen = random.choice(n, n_seen, replace=False)
        part = TwoWorlds(worlds.forecast[seen], worlds.outcomes[seen], worlds.slices)
        return bool(verifier(part.forecast, part.draw(world, random)))

    sets = range(check_count("n_datasets", n_datasets))
    return {
        "calibrated": float(np.mean([is_accepted("calibrated") for _ in sets])),
        "sliced": float(np.mean([is_accepted("sliced") for _ in sets])),
    }
