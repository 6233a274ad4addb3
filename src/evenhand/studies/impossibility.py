"""Impossibility of proving individual calibration of deterministic forecasts (paper, section 3).

Two worlds are built around a forecast. In the calibrated world each outcome is drawn from its
forecast. In the sliced world the forecast's probability is cut into equal slices, and a person's
outcomes all come from one and the same slice. While each person is seen once, the two worlds give
the same data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Ints, bad_input, check_choice, check_count, check_rows
from evenhand.calibration import calibration_error, pathwise_errors
from evenhand.draws import RandomState, fresh, generator
from evenhand.forecast import Forecast

World = Literal["calibrated", "sliced"]
WORLDS: tuple[World, World] = ("calibrated", "sliced")


@dataclass(frozen=True)
class TwoWorlds:
    """Two distributions of outcomes for the same people, and data that come from either.

    Parameters
    ----------
    forecast : Forecast
        Deterministic forecast of `n` people.
    outcomes : ndarray of shape (n,)
        The data: one outcome of each person, in units of `y`.
    slices : int
        Equal parts of the forecast's probability. With one the worlds are the same; with many, a
        person's outcome is nearly fixed in the sliced world.

    Examples
    --------
    The person is seen at the forecast's median, so in the sliced world all outcomes have PITs from
    0.4 to 0.6:

    >>> worlds = TwoWorlds(Forecast.from_normal([0.0], [1.0]), np.array([0.0]), slices=5)
    >>> worlds.pit_law("sliced", 4).round(3)
    array([[0.425, 0.475, 0.525, 0.575]])
    >>> worlds.pit_law("calibrated", 4).round(3)
    array([[0.125, 0.375, 0.625, 0.875]])
    """

    forecast: Forecast
    outcomes: Floats
    slices: int

    @property
    def slice_of(self) -> Ints:
        """Number of the slice that each person was seen in, shape (n,), from 0."""
        cells = np.floor(self.forecast.pit(self.outcomes) * self.slices)
        # a PIT that is rounded to 1 belongs to the last slice
        return np.clip(cells, 0, self.slices - 1).astype(np.intp)

    def outcomes_at(self, world: World, share: Floats) -> Floats:
        """Quantiles of each person's outcomes at `share`, shape (n, m) or (1, m), within (0, 1)."""
        check_choice("world", world, WORLDS)
        if world == "sliced":
            # uniform within the person's slice: over people all slices occur equally often
            share = (self.slice_of[:, None] + share) / self.slices
        return self.forecast.distribution.expand().ppf(share)

    def draw(self, world: World, random_state: RandomState = None) -> Floats:
        """Outcomes of the same people anew, shape (n,)."""
        share = fresh((self.forecast.n_samples, 1), generator(random_state))
        return self.outcomes_at(world, share)[:, 0]

    def pit_law(self, world: World, n_levels: int) -> Floats:
        """PITs at even quantiles of each person's outcomes, shape (n, n_levels)."""
        share = (np.arange(n_levels)[None, :] + 0.5) / n_levels
        return self.forecast.distribution.expand().cdf(self.outcomes_at(world, share))


def two_worlds(
    forecast: Forecast,
    y: ArrayLike | None = None,
    *,
    slices: int = 1001,
    random_state: RandomState = None,
) -> TwoWorlds:
    """Build two worlds with the same data, one of which a deterministic forecast is calibrated for.

    Parameters
    ----------
    forecast : Forecast
        Deterministic forecast with a continuous CDF for each of `n` people.
    y : array-like of shape (n,), optional
        The data; drawn from the forecast if None.
    slices : int, default 1001
        Equal parts of the forecast's probability, to one of which the second world holds each
        person.
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
        raise bad_input(
            "forecast", "be deterministic", "one with a draw", "randomized forecasts can be proven"
        )
    check_count("slices", slices)
    outcomes = (
        forecast.sample(random_state) if y is None else check_rows("y", y, forecast.n_samples)
    )
    return TwoWorlds(forecast, outcomes, int(slices))


@dataclass(frozen=True)
class Floors:
    """How far from calibrated a forecast is in each of the two worlds.

    Parameters
    ----------
    calibrated_error, calibrated_variation : float
        Largest distance of a person's PITs from uniform in the calibrated world: W1 and total
        variation.
    least_error, mean_error : float
        Least and mean W1 over people in the sliced world; the limit of many slices is at least 1/4.
    least_variation : float
        Least total variation over people in the sliced world; the limit is 1.
    half_mass, half_error : float
        Share and W1 error, in the sliced world, of the larger of two groups: people with PITs from
        1/2 up, and the others. It holds at least half of the people, and its error is at least 1/8
        in the limit.
    average_error : float
        W1 error of everybody together in the sliced world: all that data can show.
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
    """Measure both worlds from PITs, per person one for each slice and at least 200.

    The measured W1 of a uniform distribution is `1 / (4 m)` from `m` PITs, not 0.

    Examples
    --------
    >>> floors = measure_floors(two_worlds(Forecast.from_normal([0.0], [1.0]), y=[0.0], slices=5))
    >>> round(floors.least_error, 3), round(floors.least_variation, 3)
    (0.2, 0.8)
    """
    # a multiple of the slices, so that uniform PITs fill the slices evenly
    n_levels = worlds.slices * -(-200 // worlds.slices)
    right, wrong = (worlds.pit_law(world, n_levels) for world in ("calibrated", "sliced"))
    errors = pathwise_errors(wrong)
    # each half has its PITs on one side of 1/2, so its error is large
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
    """Least W1, total variation and W1 of the larger half that the sliced world can have.

    A distribution that is uniform on a stretch `1 / slices` long has total variation `1 - 1 /
    slices`, and W1 a quarter of that where the stretch lies in the middle, which odd numbers of
    slices allow. The larger half has PITs of at least `(1 - 1 / slices) / 2`, or of at most as much
    from the other end.

    Examples
    --------
    >>> theory_of_floors(2)
    (0.125, 0.5, 0.03125)
    """
    rest = 1 - 1 / check_count("slices", slices)
    return rest / 4, rest, rest**2 / 8


def _total_variation(pit: Floats, cells: int) -> Floats:
    """Total variation of each person's PITs from uniform, exact for densities flat on cells."""
    # a rounding error must not carry a PIT over the edge of its cell: they lie in the middle of
    # finer ones
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
    """Share of data sets from each world that a verifier of calibration accepts.

    Parameters
    ----------
    worlds : TwoWorlds
        Both worlds; the sliced one stays the same for all data.
    verifier : callable
        Takes the forecast of the people seen and their outcomes; returns whether the forecast is
        calibrated for each.
    n_seen : int
        People in a data set, drawn without replacement: each is seen once.
    n_datasets : int, default 1000
        Data sets from each world.
    random_state : int, generator or None
        Source of the data.

    Returns
    -------
    dict of str to float
        Share of yes in the worlds "calibrated" and "sliced".

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
            "n_seen", f"be at most the number of people ({n})", n_seen, "each is seen once"
        )

    def says_yes(world: World) -> bool:
        # each person is seen once: only then do both worlds give the same data
        seen = random.choice(n, n_seen, replace=False)
        part = TwoWorlds(worlds.forecast[seen], worlds.outcomes[seen], worlds.slices)
        return bool(verifier(part.forecast, part.draw(world, random)))

    sets = range(check_count("n_datasets", n_datasets))
    return {
        "calibrated": float(np.mean([says_yes("calibrated") for _ in sets])),
        "sliced": float(np.mean([says_yes("sliced") for _ in sets])),
    }
