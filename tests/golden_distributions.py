"""Golden numbers of distributions, into far tails, and of forecasts."""

import numpy as np

# every import from the package stands here: a refactor may edit these lines, and nothing below them
from evenhand import Forecast, InputError
from evenhand.distributions import (
    Bernoulli,
    Categorical,
    Hurdle,
    Joined,
    LocationScale,
    NegativeBinomial,
    Normal,
    NormalMixture,
    Poisson,
    Quantiles,
    Randomized,
    Recalibrated,
    Samples,
    Support,
    SurvivalCurves,
    Transformed,
    Truncated,
    from_records,
    to_records,
)
from evenhand.links import Entropic, Gaussian, Laplace
from evenhand.outcomes import Rounding
from golden_files import case

FAMILIES = {
    "normal": (Normal([0.5, -1.25], [1.0, 0.375]), [-9.0, -1.5, 0.25, 2.0, 12.0]),
    "normal mixture": (
        NormalMixture([0.25, 0.5, 0.25], [[-1.0, 0.5, 2.0], [0.0, 0.25, 0.75]], [[0.5], [0.75]]),
        [-8.0, -0.5, 0.25, 1.5, 10.0],
    ),
    "quantiles": (
        Quantiles(
            [0.05, 0.25, 0.5, 0.8, 0.95], [[-2.0, -1.0, 0.0, 1.5, 4.0], [0.5, 1, 1.25, 2, 3]]
        ),
        [-20.0, -1.5, 0.75, 1.75, 25.0],
    ),
    "samples": (
        Samples([[0.25, 1.0, 1.5, 2.75, 4.0], [-3.0, -1.0, -0.5, 0.0, 2.0]]),
        [-6.0, -0.75, 0.5, 2.0, 9.0],
    ),
    "survival curves": (
        SurvivalCurves([0.5, 1.0, 2.0, 4.0], [[0.9, 0.75, 0.5, 0.25], [0.95, 0.95, 0.8, 0.6]]),
        [0.01, 0.75, 1.5, 3.5, 60.0],
    ),
    "poisson": (Poisson([0.75, 4.5]), [0, 1, 2.5, 6, 60]),
    "negative binomial": (NegativeBinomial([1.5, 6.0], [0.5, 0.25]), [0, 1, 2.5, 6, 200]),
    "categorical": (
        Categorical([-1, 0, 2, 7], [[0.125, 0.5, 0.25, 0.125], [0.5, 0.0, 0.125, 0.375]]),
        [-2, -1, 0.5, 2, 7],
    ),
    "bernoulli": (Bernoulli([0.0625, 0.7]), [-1, 0, 0.5, 1, 2]),
}
"""Two distributions of each family, and outcomes from one far tail to the other."""

DRAWS = [0.0703125, 0.8125]
LEVELS = [0.0, 0.125, 0.375, 0.75, 1.0]
VALUES = [[0.0, 0.25, 0.5, 0.8125, 1.0], [0.0, 0.0625, 0.25, 0.625, 1.0]]


def continuous(base):
    """Refuse a base with atoms, to which truncation is never applied."""
    if base.has_atoms:
        raise InputError("base has atoms")
    return base


WRAPPERS = {
    "plain": lambda base: base,
    "entropic": lambda base: Randomized(base, Entropic(0.15), DRAWS),
    "laplace": lambda base: Randomized(base, Laplace(0.2), DRAWS),
    "gaussian": lambda base: Randomized(base, Gaussian(0.3), DRAWS),
    "recalibrated": lambda base: Recalibrated(base, LEVELS, VALUES, [1, 0]),
    "location-scale": lambda base: LocationScale(base, [3.0, -0.5], 2.0),
    "truncated": lambda base: Truncated(continuous(base), Support(low=-1.5, high=20.0)),
    "exponential": lambda base: Transformed(LocationScale(base, 0.25, 0.0625), Support(low=-0.5)),
    "logit": lambda base: Transformed(base, Support(low=-10.0, high=30.0)),
    "bent": lambda base: Transformed(base, Support(high=30.0, bend=2.0)),
    "hurdle": lambda base: Hurdle([0.375, 0.0625], base, -7.5),
    "hurdle above": lambda base: Hurdle([0.25, 0.5], base, 30.0, "high"),
}
"""Wrappers; of a base that one of them refuses, "refused" is kept."""

OTHER_LINKS = {"laplace", "gaussian"}
SOME = {"normal", "quantiles", "poisson", "categorical"}
"""Families under all links; others under the entropic one."""

DEEP = {
    "entropic of recalibrated": lambda base: WRAPPERS["entropic"](WRAPPERS["recalibrated"](base)),
    "laplace of truncated": lambda base: WRAPPERS["laplace"](WRAPPERS["truncated"](base)),
    "gaussian of exponential": lambda base: WRAPPERS["gaussian"](WRAPPERS["exponential"](base)),
    "recalibrated hurdle": lambda base: WRAPPERS["recalibrated"](WRAPPERS["hurdle"](base)),
    "hurdle of entropic": lambda base: WRAPPERS["hurdle"](WRAPPERS["entropic"](base)),
    "entropic of hurdle": lambda base: WRAPPERS["entropic"](WRAPPERS["hurdle"](base)),
    "hurdle of truncated": lambda base: WRAPPERS["hurdle above"](WRAPPERS["truncated"](base)),
    "location-scale of entropic": lambda base: WRAPPERS["location-scale"](
        WRAPPERS["entropic"](base)
    ),
}
"""Wrappers of wrapped normal distributions."""

P = [1e-12, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9]


def numbers_of(distribution, y):
    """Return every number of a batch of distributions at some outcomes, and its records."""
    at = np.array(y)[:, None]
    said = {name: getattr(distribution, name)(at) for name in ("logcdf", "logsf", "logpdf")}
    said |= {name: getattr(distribution, name)(at[1:4]) for name in ("cdf", "crps")}
    if distribution.has_atoms:
        both = ("logcdf", "logsf")
        said |= {f"{name}_left": getattr(distribution, name)(at, left=True) for name in both}
        said |= {"log_mass": distribution.log_mass(at)}
    said |= {"ppf": distribution.ppf(np.array(P)[:, None])}
    said |= {"moments": [distribution.mean(), distribution.std()]}
    said |= {"kind": str(distribution.outcome_kind), "records": to_records(distribution)}
    again = from_records(said["records"]).logsf(at)
    return said | {"again": np.allclose(again, said["logsf"], rtol=1e-12, atol=1e-12)}


def wrapped(make, base, y):
    try:
        return numbers_of(make(base), y)
    except InputError:
        return "refused"


@case
def families(folder):
    """Each family under each wrapper, at and beyond its ends: tails, masses, quantiles, records."""
    return {
        name: {
            wrapper: wrapped(make, base, [*y, -7.5, 30.0] if "hurdle" in wrapper else y)
            for wrapper, make in WRAPPERS.items()
            if name in SOME or wrapper not in OTHER_LINKS
        }
        for name, (base, y) in FAMILIES.items()
    }


@case
def deep_wrappers(folder):
    """Normal distributions under several wrappers, and batches with several draws."""
    base, y = FAMILIES["normal"]
    said = {name: wrapped(make, base, [*y, -7.5, 30.0]) for name, make in DEEP.items()}
    for name, (family, outcomes) in FAMILIES.items():
        wide = Randomized(family.expand(), Entropic(0.1), [[0.125, 0.5, 0.96875]])
        joined = Joined([([1], family.take([0])), ([0], family.take([1]))])
        said[f"joined {name}"] = {"logsf": joined.logsf(outcomes[3]), "ppf": joined.ppf(0.3)}
        said[f"draws of {name}"] = {
            "cdf": wide.cdf(np.array(outcomes[1:4])[:, None, None]),
            "ppf": wide.ppf([0.1, 0.5, 0.9]),
            "mean": wide.mean(),
            "take": wide.take([1]).take_draws(np.array([[2, 0]])).logsf(outcomes[2]),
        }
    return said


@case
def forecasts(folder):
    """Every answer of a forecast, of each kind, deterministic and with one draw per person."""
    part = Forecast.from_normal([2.0, 3.0, 1.5], [0.5, 1.0, 0.25])
    chance = [0.25, 0.5, 0.0625]
    times = [[0.9, 0.7, 0.4], [0.95, 0.8, 0.75], [0.5, 0.25, 0.125]]
    given = {
        "normal": (part, [1.75, 4.0, 1.5]),
        "quantiles": (Forecast.from_quantiles([0.1, 0.5, 0.9], [[1, 2, 4]] * 3), [1.5, 2, 9]),
        "samples": (Forecast.from_samples([[1, 2, 4, 7]] * 3), [1.5, 2, 9]),
        "counted samples": (Forecast.from_samples([[1, 2, 2, 7]] * 3, kind="count"), [1, 2, 7]),
        "poisson": (Forecast.from_poisson([0.5, 3.0, 9.0]), [0, 3, 12]),
        "negative binomial": (Forecast.from_negative_binomial([2.0, 3.0, 9.0], 0.5), [0, 3, 12]),
        "scores": (Forecast.from_pmf([1, 2, 4], [[0.25, 0.5, 0.25]] * 3), [1, 2, 4]),
        "events": (Forecast.from_probability(chance), [0, 1, 0]),
        "amounts": (Forecast.from_hurdle(chance, part), [0.0, 2.5, 1.25]),
        "times": (Forecast.from_survival([1, 2, 5], times), [0.5, 3.0, 7.0]),
        "cut times": (Forecast.from_survival([1, 2, 5], times, horizon=2.0), [0.5, 2.0, 1.5]),
    }
    said = {}
    for name, (forecast, y) in given.items():
        said[name] = answers_of(forecast, y)
        if name != "events":
            served = forecast.randomized(0.2, "entropic", [0.125, 0.5, 0.9375])
            said[f"randomized {name}"] = answers_of(served, y)
    return said


def answers_of(forecast, y):
    """Return every answer of a forecast about some outcomes."""
    said = {
        "kind": str(forecast.outcome_kind),
        "pit_interval": forecast.pit_interval(y),
        "interval": forecast.interval(0.8),
        "sample": forecast.sample(np.random.default_rng(3)),
        "mean": forecast.mean(),
        "std": forecast.std(),
        "crps": forecast.crps(y),
        "logpdf": forecast.logpdf(y),
        "log_mass": forecast.log_mass(y),
        "log_density": forecast.log_density(y),
    }
    if forecast.has_atoms:
        said["pit"] = forecast.pit(y, ties=[0.25, 0.5, 0.875])
    else:
        said |= {"pit": forecast.pit(y), "log_cell": forecast.log_cell(y, 0.5)}
        said |= {"cells": forecast.pit_interval(y, rounding=Rounding(0.5, (1.5, 9.0)))}
    if forecast.outcome_kind in ("binary", "hurdle"):
        said["event"] = forecast.event_probability()
    if forecast.outcome_kind == "hurdle":
        said["part"] = forecast.positive_part().ppf(0.3)
    return said
