"""Input validation. Every message gives the parameter, the rule, the value and the remedy."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import in_full, percent

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]
OnDiscrete = Literal["raise", "warn", "ignore"]

MIN_DISTINCT = 20
"""Fewest distinct outcomes that count as continuous."""

MAX_ATOM = 0.10
"""Largest share of rows that may hold one and the same outcome."""

MILD_ATOM = 0.02
"""Share of rows with one and the same outcome from which a warning is given and PITs are
jittered."""


class InputError(ValueError):
    """Input that cannot be used. The message is one line: place, rule, value and remedy."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed. The message names the extra that brings it."""


class DiscreteOutcomeWarning(UserWarning):
    """The outcome is discrete in part, so PITs of a true forecast are not uniform."""


def bad_input(parameter: str, rule: str, got: Any, remedy: str = "") -> InputError:
    """Make the error for a parameter that breaks its rule.

    Examples
    --------
    >>> bad_input("alpha", "fulfil 0 < alpha <= 1", 1.2, "use 0.1 to begin with")
    InputError('alpha must fulfil 0 < alpha <= 1, got 1.2; use 0.1 to begin with')
    """
    return InputError(f"{parameter} must {rule}, got {got}" + (f"; {remedy}" if remedy else ""))


@contextmanager
def about(source: str) -> Iterator[None]:
    """Name the table in messages about its columns."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency; MissingExtraError names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # the module is there but fails to import something else: that is another error
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{module} is not installed; run: pip install 'evenhand[{extra}]'"
        ) from error


def check_fraction(
    name: str, value: float, *, low_open: bool = True, high_open: bool = True
) -> float:
    """Return `value` as a float if it lies between 0 and 1, with or without the ends."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    low_ok = number > 0 if low_open else number >= 0
    high_ok = number < 1 if high_open else number <= 1
    if not (low_ok and high_ok):
        rule = f"fulfil 0 {'<' if low_open else '<='} {name} {'<' if high_open else '<='} 1"
        got = repr(value.item() if isinstance(value, np.generic) else value)
        raise bad_input(name, rule, got, "fractions everywhere: 0.9, not 90" if number > 1 else "")
    return number


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Return a parameter that counts something as an int."""
    # True is an int for Python, and never a count
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise bad_input(name, f"be an integer of at least {least}", repr(value))
    return int(value)


def check_masses(masses: ArrayLike) -> Floats:
    """Return masses as a list of shares, each above 0 and at most 1."""
    shares = np.atleast_1d(np.asarray(masses, dtype=np.float64))
    if shares.ndim != 1 or shares.size == 0:
        raise bad_input("masses", "be a number or a list of numbers", f"shape {shares.shape}")
    for mass in shares:
        check_fraction("mass", mass, high_open=False)
    return shares


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise bad_input(
            name, "be one of " + ", ".join(repr(choice) for choice in choices), repr(value)
        )
    return str(value)


def check_column(name: str, columns: Iterable[Any], source: str) -> str:
    """Return `name` if a table has such a column; the error names similar ones.

    Examples
    --------
    >>> check_column("ag", ["age"], "t.csv")
    Traceback (most recent call last):
    evenhand._validate.InputError: t.csv must have a column 'ag', got ... did you mean 'age'?
    """
    present = [str(column) for column in columns]
    if name in present:
        return name
    lowered = {column.lower(): column for column in present}
    # at the default likeness of 0.6, `nope` would be similar to `income`
    near = difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.7)
    remedy = (
        f"did you mean {' or '.join(repr(lowered[one]) for one in near)}?"
        if near
        else "name one of these"
    )
    listed = ", ".join(present[:20]) + (", ..." if len(present) > 20 else "")
    raise bad_input(source, f"have a column {name!r}", f"the columns {listed}", remedy)


def check_draws(r: ArrayLike) -> Floats:
    """Return draws as floats, each strictly between 0 and 1; shape as given."""
    try:
        draws = np.asarray(r, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad_input(
            "r", "hold numbers only", f"values that are not numbers ({error})"
        ) from error
    # written so that NaN is wrong, too. At 0 and 1 a link has no finite quantile
    wrong = ~((draws > 0) & (draws < 1))
    if wrong.any():
        first = np.argwhere(wrong)[0]
        place = f"r[{', '.join(str(i) for i in first)}]" if draws.ndim else "r"
        raise bad_input(place, "lie strictly between 0 and 1", float(draws[tuple(first)]))
    return draws


def check_finite(name: str, values: ArrayLike, *, ndim: int = 1) -> Floats:
    """Return `values` as a non-empty float array of `ndim` dimensions without NaN or infinity."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad_input(
            name, "hold numbers only", f"values that are not numbers ({error})"
        ) from error
    if array.ndim != ndim:
        raise bad_input(
            name, f"have {ndim} dimension{'s' if ndim > 1 else ''}", f"shape {array.shape}"
        )
    if array.size == 0:
        raise bad_input(name, "hold at least one value", "none")
    wrong = ~np.isfinite(array)
    if wrong.any():
        first = np.argwhere(wrong)[0]
        place = f"{name}[{', '.join(str(i) for i in first)}]"
        count = int(wrong.sum())
        raise bad_input(
            place, "be finite", float(array[tuple(first)]), f"drop the {count} such value(s)"
        )
    return array


def check_rows(name: str, values: ArrayLike, n_samples: int) -> Floats:
    """Return one finite number per row."""
    array = check_finite(name, values)
    if array.shape != (n_samples,):
        raise bad_input(name, f"have one value per row ({n_samples})", f"shape {array.shape}")
    return array


def check_weights(sample_weight: ArrayLike | None, n_samples: int) -> Floats:
    """Return weights that are non-negative, not all zero and scaled to mean 1; ones if None."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights = check_rows("sample_weight", sample_weight, n_samples)
    if (weights < 0).any():
        first = int(np.argmax(weights < 0))
        raise bad_input(f"sample_weight[{first}]", "be at least 0", float(weights[first]))
    if not weights.any():
        raise bad_input("sample_weight", "have a positive sum", "zeros only")
    return np.asarray(weights / weights.mean())


def check_indices(values: ArrayLike, n: int, what: str) -> None:
    """Raise if integers are no indices from 0 to `n - 1`; `what` names them in the message."""
    indices = np.asarray(values).astype(np.int64)
    if not np.all((indices >= 0) & (indices < n)):
        raise InputError(f"{what} is out of range")


def coded(values: Any, place: str) -> tuple[NDArray[np.intp], Any]:
    """Return a code per row, -1 where missing, and the value of each code."""
    import pandas as pd  # slow to import, and rarely needed here

    try:
        codes, distinct = pd.factorize(values)
    except TypeError as error:
        kind = next((type(value).__name__ for value in values if is_container(value)), "containers")
        got = {"list": "lists", "ndarray": "lists", "dict": "structs or maps"}.get(kind, kind)
        remedy = "leave the column out, or write its parts as columns of their own"
        raise bad_input(place, "hold single values", got, remedy) from error
    return np.asarray(codes, dtype=np.intp), distinct


def is_container(value: Any) -> bool:
    """Whether a value holds several, such as a list or a struct of a parquet file."""
    return isinstance(value, list | dict | set | np.ndarray)


def largest_atom(y: Floats) -> tuple[float, float]:
    """Return the most frequent outcome and the share of rows that hold it."""
    values, counts = np.unique(y, return_counts=True)
    top = int(np.argmax(counts))
    return float(values[top]), float(counts[top] / y.size)


def check_continuous(y: Floats, *, name: str = "y", on_discrete: OnDiscrete = "raise") -> None:
    """Refuse an outcome that is not continuous, or warn about it.

    A PIT is uniform for the true forecast only if the outcome is continuous. Fewer than 20 rows or
    distinct values, or one value in more than 10% of the rows, are refused (`"raise"`) or
    warned about (`"warn"`); one value in more than 2% of the rows is warned about in either case.

    Raises
    ------
    InputError
        If there are too few rows or the outcome is discrete, and `on_discrete` is `"raise"`.
    """
    check_choice("on_discrete", on_discrete, ("raise", "warn", "ignore"))
    if on_discrete == "ignore":
        return
    n_distinct = np.unique(y).size
    value, share = largest_atom(y)
    if y.size < MIN_DISTINCT:
        trouble = (
            f"{name} has {y.size} row{'s' * (y.size != 1)}; at least {MIN_DISTINCT} are needed"
        )
    elif n_distinct == 1:
        trouble = (
            f"{name} is constant ({value:g} in all {y.size} rows): there is nothing to forecast"
        )
    elif n_distinct < MIN_DISTINCT:
        trouble = (
            f"{name} has {n_distinct} distinct values in {y.size} rows and must have at least"
            f" {MIN_DISTINCT}: calibration of a whole distribution needs a continuous outcome; use"
            " a classifier for classes"
        )
    elif share > MAX_ATOM:
        trouble = (
            f"{name} is {value:g} in {percent(share, 'up')} of the rows and no value may hold more"
            f" than {in_full(MAX_ATOM)}: calibration of a whole distribution needs a continuous"
            " outcome; model that value apart"
        )
    else:
        # a single row is more than 2% of fewer than 50 rows: only a repeated value is an atom
        if share > MILD_ATOM and n_distinct < y.size:
            warnings.warn(
                f"{name} is {value:g} in {percent(share, 'up')} of the rows: their PITs pile up; an"
                " audit spreads them at random over the probability of the rounding cell if all"
                " outcomes lie on a grid",
                DiscreteOutcomeWarning,
                stacklevel=3,
            )
        return
    if on_discrete == "raise":
        raise InputError(trouble)
    warnings.warn(trouble, DiscreteOutcomeWarning, stacklevel=3)
