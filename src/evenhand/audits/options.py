"""Options of an audit, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import bad_input, check_count, check_finite, check_fraction

MASSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LEARNED_MASSES = (0.1, 0.2, 0.5)
"""Default group sizes of an audit, as shares of the rows."""

MIN_SIZE = 150
"""Default minimum number of rows in a scanned group."""

N_SIMULATIONS = 20
"""Default number of simulated calibrated forecasters."""

TOLERANCE = 0.02
"""Default tolerance: an error of 2 points."""


@dataclass(frozen=True)
class Search:
    """Options of an audit's tests and searches, checked when it is made: parameters of `audit`."""

    masses: Sequence[float] = MASSES
    learned_masses: Sequence[float] = LEARNED_MASSES
    min_size: int = MIN_SIZE
    tolerance: float | None = None
    confidence: float = 0.95
    n_simulations: int = N_SIMULATIONS

    def __post_init__(self) -> None:
        """Check options before any work, so that a search can later fail only for lack of rows."""
        learned, tolerance = self.learned_masses, self.tolerance
        checked = {
            "masses": _shares("masses", self.masses),
            "learned_masses": _shares("learned_masses", learned) if np.size(learned) else [],
            "min_size": check_count("min_size", self.min_size, least=2),
            "confidence": check_fraction("confidence", self.confidence),
            "n_simulations": check_count("n_simulations", self.n_simulations, least=2),
        }
        if tolerance is not None:
            checked["tolerance"] = check_fraction(
                "tolerance", tolerance, low_open=False, high_open=False
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def with_search(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `audit` with those of its searches in one object, `search`."""
    names = {one.name for one in fields(Search)}
    found = {name: value for name, value in options.items() if name not in names}
    search = Search(**{name: value for name, value in options.items() if name in names})
    return dict(search=search, **found)


def resolved_tolerance(given: float | None, probability: float | None) -> float:
    """Return the tolerance: as given, or 2 points; of rates at most a fifth of the rate.

    `probability` is the mean probability of 0/1 outcomes, None for others: the tolerance depends on
    the forecasts alone (verdict: 3).

    Examples
    --------
    >>> resolved_tolerance(None, None), resolved_tolerance(None, 0.05)
    (0.02, 0.01)
    """
    if given is not None or probability is None:
        return TOLERANCE if given is None else given
    return min(TOLERANCE, min(probability, 1 - probability) / 5)


def check_about(about: Mapping[str, str] | None) -> dict[str, str]:
    """Return the description of an audit, without blanks around its texts.

    Examples
    --------
    >>> check_about({"unit": " mg per week"})
    {'unit': 'mg per week'}
    """
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        rule, remedy = "be a mapping of texts", 'pass a dict such as {"unit": "mg per week"}'
        raise bad_input("about", rule, type(about).__name__, remedy)
    found = {
        _text(key, "each key of about"): _text(value, f"about[{key!r}]")
        for key, value in about.items()
    }
    if len(found) < len(about):
        rule = "have keys that differ in more than blanks"
        raise bad_input("about", rule, list(about), "give each key once")
    return found


def _text(value: Any, place: str) -> str:
    """Return a text without the blanks around it."""
    if not isinstance(value, str) or not value.strip():
        raise bad_input(
            place, "be a text that is not empty", repr(value), "give a text or leave it out"
        )
    return value.strip()


def _shares(name: str, values: ArrayLike) -> list[float]:
    shares = check_finite(name, np.atleast_1d(np.asarray(values)))
    return [
        check_fraction(f"{name}[{i}]", share, high_open=False) for i, share in enumerate(shares)
    ]
