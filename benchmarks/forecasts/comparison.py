"""Comparison of forecasters on the same rows: ranks, paired differences, and the claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

DEFAULTS = ("network", "boosted")
"""Forecasters that the claims are about."""

PEERS = ("ngboost", "ngboost-stopped", "catboost", "catboost-stopped", "forest", "conformal")

FIELD = (*DEFAULTS, *PEERS)
"""Forecasters that are ranked."""

NOT_STOPPED = ("ngboost", "catboost")
"""Peers that overfit small tables, as their number of rounds is fixed: to be better than these does
not make a default better than the last."""

SHOWN = (*FIELD, "wrapped", "auto")
"""Forecasters that are shown; neither the wrapper around a plain model nor the choice between
defaults is ranked."""

RANKED = {"log": "log score", "crps": "CRPS"}
"""Scores that the claims are about, and their names; lower is better."""

REFERENCE = "ngboost"
"""Forecaster whose CPU time is the measure of that of others."""

LEAST_SHARE = 0.75
MOST_TOTAL_CPU = 1.0
MOST_CPU = 3.0


@dataclass(frozen=True)
class TableScores:
    """Scores of all forecasters on the test rows of a table.

    Parameters
    ----------
    name : str
        Name of the table.
    n_features : int
        Number of features.
    step : float or None
        Rounding step of the outcomes.
    y : ndarray of shape (n,)
        Outcomes.
    scores : dict of str to dict of str to ndarray of shape (n,)
        Of each forecaster, "log", "crps", "mean" and "pit" of each row.
    cpu, predict : dict of str to float
        CPU seconds of the fits of each forecaster, and of a prediction of 5,600 rows by each of
        them, all folds together.
    """

    name: str
    n_features: int
    step: float | None
    y: np.ndarray
    scores: Mapping[str, Mapping[str, np.ndarray]]
    cpu: Mapping[str, float]
    predict: Mapping[str, float]

    def ranked(self, score: str) -> dict[str, np.ndarray]:
        """Return one score per row of each forecaster that is ranked."""
        return {name: self.scores[name][score] for name in FIELD if name in self.scores}

    @property
    def is_complete(self) -> bool:
        """Whether all forecasters that are ranked were run."""
        return all(name in self.scores for name in FIELD)


def paired(own: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return the mean of paired differences over rows and its standard error.

    Examples
    --------
    >>> paired(np.array([1.0, 3.0]), np.array([0.0, 0.0]))
    (2.0, 1.0)
    """
    difference = own - other
    error = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else np.nan
    return float(difference.mean()), float(error)


def ranks(scores: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Return the rank of each forecaster by its mean score, 1 for the lowest mean.

    Examples
    --------
    >>> ranks({"a": np.array([1.0, 2.0]), "b": np.array([0.0, 1.0])})
    {'a': 2, 'b': 1}
    """
    means = {name: float(values.mean()) for name, values in scores.items()}
    return {name: 1 + sum(other < mean for other in means.values()) for name, mean in means.items()}


def near_first(scores: Mapping[str, np.ndarray]) -> set[str]:
    """Return the forecasters that are first or within one standard error of the first.

    The standard error is that of the paired difference to the first.
    """
    first = min(scores, key=lambda name: scores[name].mean())
    near = {first}
    for name, values in scores.items():
        difference, error = paired(values, scores[first])
        if difference <= error:
            near.add(name)
    return near


def last(scores: Mapping[str, np.ndarray]) -> str:
    """Return the forecaster with the highest mean score, among those that stop early if they can.

    Examples
    --------
    >>> last({"network": np.array([1.0]), "boosted": np.array([2.0]), "ngboost": np.array([3.0])})
    'boosted'
    """
    judged = [name for name in scores if name not in NOT_STOPPED]
    return max(judged, key=lambda name: scores[name].mean())


@dataclass(frozen=True)
class Claim:
    """A claim about the defaults, with what was found.

    Parameters
    ----------
    sentence : str
        The claim.
    found : str
        What was found.
    is_held : bool
        Whether the claim holds.
    """

    sentence: str
    found: str
    is_held: bool


def claims(tables: Sequence[TableScores]) -> Iterator[Claim]:
    """Yield the claims about the defaults on complete tables."""
    good = [table for table in tables if _is_led(table)]
    yield Claim(
        "the network or the boosted model is first or within one standard error of first in CRPS,"
        " and one of them in log score, on at least three quarters of the tables",
        f"{len(good)} of {len(tables)}",
        len(good) >= LEAST_SHARE * len(tables) > 0,
    )
    for name in DEFAULTS:
        lasts = [
            f"{table.name} ({RANKED[score]})"
            for table in tables
            for score in RANKED
            if last(table.ranked(score)) == name
        ]
        found = ", ".join(lasts) or "never"
        sentence = f"{name} is never last in CRPS or log score on these tables"
        yield Claim(sentence, found, not lasts)
    for name in DEFAULTS:
        total = cpu_ratio(tables, name)
        yield Claim(
            f"the fits of {name} cost in total no more CPU than those of NGBoost",
            f"{total:.2f} times",
            total <= MOST_TOTAL_CPU,
        )
        most, where = max((cpu_ratio([table], name), table.name) for table in tables)
        yield Claim(
            f"the fits of {name} cost at most 3 times the CPU of NGBoost on any of these tables",
            f"{most:.2f} times on {where}",
            most <= MOST_CPU,
        )


def cpu_ratio(tables: Sequence[TableScores], name: str) -> float:
    """Return the CPU time of a forecaster's fits over that of NGBoost's, all tables together."""
    own = sum(table.cpu[name] for table in tables)
    return own / sum(table.cpu[REFERENCE] for table in tables)


def _is_led(table: TableScores) -> bool:
    """Whether one of the defaults is near the first in each score."""
    return all(near_first(table.ranked(score)) & set(DEFAULTS) for score in RANKED)
