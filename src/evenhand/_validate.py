"""Input validation. Every message gives the parameter, the rule, the value and the remedy."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from inspect import formatannotation
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import and_more, percent

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]
AnyPath = str | os.PathLike[str]
Pair = tuple[Floats, Floats]
"""Two arrays that belong together, such as the ends of cells, or knots and the values at them."""

MIN_DISTINCT = 20
"""Fewest rows, and fewest distinct outcomes that count as continuous."""

MAX_ATOM = 0.10
"""Share of rows with the same outcome above which the warning names another forecaster."""

MILD_ATOM = 0.02
"""Share of rows with the same outcome above which a warning is given and PITs are jittered."""

# models and their checks square numbers, and a float ends at 1.8e308
LARGEST = 1e150
"""Largest size of a feature."""

REMEDY = "correct it or drop the row"
"""What to do about a wrong value in a table."""

LONGEST_SHOWN = 60
"""Largest number of characters of a value in a message."""


class InputError(ValueError):
    """Invalid input. The message is one line that gives the place, rule, value and remedy."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed. The message names the extra that installs it."""


class DiscreteOutcomeWarning(UserWarning):
    """The outcome is partly discrete, so the PITs of a correct forecast are not uniform."""


def bad_input(parameter: str, rule: str, got: Any, remedy: str = "") -> InputError:
    """Return the error for a parameter that violates its rule.

    Examples
    --------
    >>> bad_input("alpha", "be above 0 and at most 1", 1.2, "use 0.1 to begin with")
    InputError('alpha must be above 0 and at most 1, got 1.2; use 0.1 to begin with')
    """
    message = f"{named(parameter)} must {rule}, got {got}"
    return InputError(message + (f"; {remedy}" if remedy else ""))


shown_names: ContextVar[Mapping[str, str]] = ContextVar("shown_names", default=MappingProxyType({}))
"""Options by the parameters that they set, while a command runs."""


_columns: ContextVar[Mapping[str, Sequence[str]]] = ContextVar(
    "columns", default=MappingProxyType({})
)
"""Columns by the parameters that are read from them; several are those of an array."""


def named(parameter: str) -> str:
    """Return the name of a parameter in messages: its column, or its option in a command."""
    if columns := _columns.get().get(parameter):
        return f"column {columns[0]!r}" if len(columns) == 1 else f"columns {and_more(columns)}"
    return shown_names.get().get(parameter, parameter)


def short(value: Any) -> str:
    """Return the representation of a value in messages: one line of limited length."""
    shown = repr(value.item() if isinstance(value, np.generic) else value)
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 3] + "..."


hints_of = cache(get_type_hints)


def typed_fields(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON values for the fields of a dataclass or the parameters of a function.

    Lists become tuples. Raises InputError if a value does not have its declared type.

    Examples
    --------
    >>> def drawn(alpha: float = 0.1, levels: tuple[float, ...] | None = None) -> None: ...
    >>> typed_fields(drawn, {"alpha": 1, "levels": [0.1, 0.9]})
    {'alpha': 1, 'levels': (0.1, 0.9)}
    """
    hints = hints_of(owner)
    return {name: typed(name, value, hints.get(name, Any)) for name, value in values.items()}


def typed(name: str, value: Any, declared: Any) -> Any:
    """Return a JSON value of a declared type, lists as tuples; InputError for any other."""
    if not _has_type(value, declared):
        raise bad_input(name, f"have the type {formatannotation(declared)}", short(value))
    return tuple(value) if isinstance(value, list) else value


def _has_type(value: Any, declared: Any) -> bool:
    """Whether a JSON value has a type; numbers are finite, and integers have 64 bits."""
    kind, parts = get_origin(declared), get_args(declared)
    if kind in (Union, UnionType):
        return any(_has_type(value, part) for part in parts)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind is tuple:
        if not isinstance(value, list | tuple):
            return False
        members = parts[:1] * len(value) if parts[-1] is ... else parts
        return len(value) == len(members) and all(map(_has_type, value, members))
    if declared in (int, float):
        is_number = isinstance(value, int | declared) and not isinstance(value, bool)
        return is_number and abs(value) < (math.inf if isinstance(value, float) else 2**63)
    return declared is Any or isinstance(value, kind or declared)


@contextmanager
def read_state(method: str) -> Iterator[None]:
    """Raise InputError if the block cannot read the output of a method.

    It comes from a file, which may be damaged or forged.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # the message of an InputError needs no name of its class
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        raise InputError(f"the state is not the output of {method} ({reason})") from error


@contextmanager
def about(source: str, start: int = 0, **columns: str | Sequence[str] | None) -> Iterator[None]:
    """Begin the message of any InputError in the block with the name of the table.

    Rows are counted from the one that `start` is. Messages name the `columns` from which parameters
    were read: one, or one for each column of an array.
    """
    found = {k: [one] if isinstance(one, str) else one for k, one in columns.items() if one}
    names = _columns.set({**_columns.get(), **found})
    token = _place.set((source, start))
    try:
        yield
    except InputError as error:
        if str(error).startswith(f"{source}: "):
            raise
        raise type(error)(f"{source}: {error}") from error
    finally:
        _columns.reset(names)
        _place.reset(token)


_place: ContextVar[tuple[str, int]] = ContextVar("place", default=("X", 0))


@contextmanager
def counted_from(start: int) -> Iterator[None]:
    """Count rows, in messages, from one that is not the first of their table."""
    source, first = _place.get()
    token = _place.set((source, first + start))
    try:
        yield
    finally:
        _place.reset(token)


def place_of_rows() -> tuple[str, int]:
    """Return the name of the table and the number of the first row, for messages."""
    return _place.get()


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or raise MissingExtraError with the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # the module is installed, but one of its own imports is not: a different error
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{module} is not installed; run: pip install 'evenhand[{extra}]'"
        ) from error


def as_number(value: Any) -> float:
    """Return a value as a float; NaN if it is none: a text, a boolean, or too large an integer."""
    if isinstance(value, bool | np.bool_ | str):
        return math.nan
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return math.nan


def check_fraction(
    name: str, value: float, *, low_open: bool = True, high_open: bool = True
) -> float:
    """Return `value` as a float if it lies between 0 and 1.

    `low_open` and `high_open` exclude the ends 0 and 1.
    """
    number = as_number(value)
    low_ok = number > 0 if low_open else number >= 0
    high_ok = number < 1 if high_open else number <= 1
    if not (low_ok and high_ok):
        least, most = "above" if low_open else "at least", "below" if high_open else "at most"
        # between 1 and 2, a percentage is unlikely
        example = f"{number / 100:.10g}, not {number:.10g}" if 2 <= number <= 100 else "0.9, not 90"
        remedy = f"give a fraction: {example}" if number > 1 else ""
        raise bad_input(name, f"be {least} 0 and {most} 1", short(value), remedy)
    return number


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Return a count, such as a number of rows, as an int."""
    # True is an int in Python, but never a count
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise bad_input(name, f"be an integer of at least {least}", short(value))
    return int(value)


def check_levels(levels: Sequence[Any]) -> tuple[float, ...]:
    """Return levels of quantiles as floats, which increase strictly between 0 and 1."""
    found = tuple(map(as_number, levels))
    if not found or not found[0] > 0 or not found[-1] < 1 or sorted(set(found)) != list(found):
        rule = "be increasing and strictly between 0 and 1"
        raise bad_input("levels", rule, short(list(levels)), "give fractions: 0.9, not 90")
    return found


def check_masses(masses: ArrayLike) -> Floats:
    """Return group sizes as an array of shares, each above 0 and at most 1."""
    shares = np.atleast_1d(np.asarray(masses, dtype=float))
    if shares.ndim != 1 or shares.size == 0:
        raise bad_input("masses", "be a number or a list of numbers", f"shape {shares.shape}")
    for mass in shares:
        check_fraction("mass", mass, high_open=False)
    return shares


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a question that suggests known names similar to a wrong one; "" if there are none.

    Examples
    --------
    >>> did_you_mean("Gausian", ["entropic", "gaussian"]), did_you_mean("nope", ["income"])
    ("did you mean 'gaussian'?", '')
    """
    # all options begin alike
    lowered = {one.lower().lstrip("-"): one for one in known}
    # at the default cutoff of 0.6, `nope` would count as similar to `income`
    near = difflib.get_close_matches(str(name).lower().lstrip("-"), lowered, n=3, cutoff=0.65)
    return f"did you mean {' or '.join(repr(lowered[one]) for one in near)}?" if near else ""


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`; the error suggests similar ones."""
    if value not in choices:
        rule = "be one of " + ", ".join(repr(choice) for choice in choices)
        raise bad_input(name, rule, short(value), did_you_mean(value, choices))
    return str(value)


def check_column(name: str, columns: Iterable[Any], source: str) -> str:
    """Return `name` if a table has a column of that name; the error suggests similar names.

    Examples
    --------
    >>> check_column("ag", ["age"], "t.csv")
    Traceback (most recent call last):
    evenhand._validate.InputError: t.csv has no column 'ag', only age; did you mean 'age'?
    """
    present = [str(column) for column in columns]
    if name in present:
        return name
    remedy = did_you_mean(name, present) or "name one of these"
    raise InputError(f"{source} has no column {short(name)}, only {and_more(present)}; {remedy}")


def check_probabilities(name: str, values: ArrayLike) -> Floats:
    """Return probabilities as an array of floats, without a copy where they are."""
    array = as_floats(name, values)
    wrong = ~((array >= 0) & (array <= 1))
    refuse_entry(name, array, wrong, "lie between 0 and 1", "give a fraction: 0.9, not 90")
    return array


def check_draws(r: ArrayLike) -> Floats:
    """Return draws as floats of the same shape, each strictly between 0 and 1."""
    draws = as_floats("r", r)
    # written so that NaN is refused too; at 0 and 1 a link has no finite quantile
    refuse_entry("r", draws, ~((draws > 0) & (draws < 1)), "lie strictly between 0 and 1")
    return draws


def refuse_entry(name: str, array: Floats, wrong: Mask, rule: str, remedy: str = "") -> None:
    """Raise InputError for the first entry of an array that is marked as wrong."""
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0])
        remedy = remedy or REMEDY * (name in _columns.get())
        raise bad_input(place_of(name, first), rule, float(array[first]), remedy)


def place_of(name: str, index: tuple[Any, ...]) -> str:
    """Return the name of an entry of an array, or of a column of a table, for messages."""
    columns = _columns.get().get(name)
    if not index or not columns:
        return f"{name}[{', '.join(str(i) for i in index)}]" if index else name
    row = f"row {_place.get()[1] + index[0] + 1}"
    if len(columns) > 1 and len(index) == 1:
        return row
    return f"column {columns[index[-1] if len(columns) > 1 else 0]!r}, {row}"


def check_finite(name: str, values: ArrayLike) -> Floats:
    """Return `values` as a non-empty float array of one dimension without NaN or infinity."""
    array = as_floats(name, values)
    if array.ndim != 1:
        raise bad_input(name, "have 1 dimension", f"shape {array.shape}")
    if array.size == 0:
        raise InputError(f"{name} is empty; give at least one value")
    wrong = ~np.isfinite(array)
    n = wrong.sum()
    # no filling: a made-up outcome would be judged like an observed one
    remedy = "drop that row" if n == 1 else f"drop the {n} rows with such values"
    refuse_entry(name, array, wrong, "be finite", remedy)
    return array


def as_floats(name: str, values: ArrayLike) -> Floats:
    """Return values as an array of floats, without a copy where they are."""
    dtype = getattr(values, "dtype", None)
    # numpy would count nanoseconds
    if getattr(dtype, "kind", None) in ("m", "M"):
        raise bad_input(name, "contain numbers", dtype, "convert them, such as dates to days")
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise not_numbers(name, values, error) from error


def not_numbers(name: str, values: ArrayLike, error: Exception) -> InputError:
    """Return the error for values that numpy cannot read, with the remedy for words."""
    coding = coding_of(np.ravel(np.asarray(values, dtype=object)).tolist())
    remedy = "" if coding is None else f"; {coding}"
    return InputError(f"{named(name)} contains values that are not numbers ({error}){remedy}")


def coding_of(cells: Sequence[object]) -> str | None:
    """Return how to write words for a few values as numbers; None if other cells are not missing.

    Examples
    --------
    >>> coding_of(["yes", "no", "", None, float("nan")])
    'code the event as 1 and the other value as 0'
    >>> coding_of(["low", "high", "middle"])
    'code ordered values as numbers, such as 1, 2, 3'
    >>> coding_of([1.5, "?"])
    """
    words = [cell for cell in cells if str(cell) not in ("", "nan", "None", "<NA>")]
    n_words = len(set(words)) if all(isinstance(word, str) for word in words) else 0
    if not 2 <= n_words < MIN_DISTINCT:
        return None
    if n_words == 2:
        return "code the event as 1 and the other value as 0"
    return "code ordered values as numbers, such as 1, 2, 3"


def check_rows(name: str, values: ArrayLike, n_samples: int) -> Floats:
    """Return one finite number per row."""
    array = check_finite(name, values)
    if array.shape != (n_samples,):
        raise bad_input(name, f"have one value per row ({n_samples})", f"shape {array.shape}")
    return array


def check_weights(weights: ArrayLike | None, n_samples: int, name: str = "sample_weight") -> Floats:
    """Return non-negative weights, not all zero, scaled to mean 1; ones if None."""
    if weights is None:
        return np.ones(n_samples)
    checked = check_rows(name, weights, n_samples)
    refuse_entry(name, checked, checked < 0, "be at least 0")
    if not checked.any():
        raise bad_input(name, "have a positive sum", "zeros only")
    return checked / checked.mean()


def check_indices(values: ArrayLike, n: int, what: str) -> None:
    """Raise if integers are not indices from 0 to `n - 1`; `what` names them in the message."""
    indices = np.asarray(values).astype(np.int64)
    if not np.all((indices >= 0) & (indices < n)):
        raise InputError(f"{what} is out of range")


def coded(values: Any, place: str) -> tuple[Ints, Any]:
    """Return a code per row, -1 where missing, and the value of each code."""
    import pandas as pd  # slow to import, and rarely needed here

    try:
        codes, distinct = pd.factorize(values)
    except TypeError as error:
        kind = next((type(value).__name__ for value in values if is_container(value)), "containers")
        got = {"list": "lists", "ndarray": "lists", "dict": "structs or maps"}.get(kind, kind)
        remedy = "drop the column, or write its parts as separate columns"
        raise bad_input(place, "contain single values", got, remedy) from error
    return codes, distinct


def is_container(value: Any) -> bool:
    """Whether a value is a container, such as a list or a struct of a parquet file."""
    return isinstance(value, list | dict | set | np.ndarray)


def largest_atom(y: Floats) -> tuple[float, float]:
    """Return the most frequent outcome and its share of the rows."""
    values, counts = np.unique(y, return_counts=True)
    top = np.argmax(counts)
    return float(values[top]), float(counts[top] / y.size)


_is_checked: ContextVar[bool] = ContextVar("evenhand_outcomes_are_checked", default=False)


@contextmanager
def outcomes_checked() -> Iterator[None]:
    """Let outcomes pass unchecked in the block, where a caller has checked all rows before.

    Inner models and models of folds see a part of the same outcomes; they would warn again, or
    refuse a part with few rows.
    """
    token = _is_checked.set(True)
    try:
        yield
    finally:
        _is_checked.reset(token)


def check_outcomes(y: Floats, *, name: str = "y", kind: str | None = "continuous") -> None:
    """Check that there are enough finite outcomes, and that they are of the kind that is forecast.

    Raises InputError if there are fewer than 20 rows, or continuous outcomes are constant, or
    binary outcomes contain other values than 0 and 1. Gives a DiscreteOutcomeWarning, which names
    the forecaster to use, about continuous outcomes with atoms: fewer than 20 distinct values, or
    one value in more than 2% of the rows. With kind None the kind is not known yet: all rows may
    have atoms, but must not be constant.
    """
    if _is_checked.get():
        return
    if y.size < MIN_DISTINCT:
        raise InputError(
            f"{name} has {y.size} row{'s' * (y.size != 1)}; at least {MIN_DISTINCT} are needed"
        )
    if kind in ("continuous", None) and (y == y[0]).all():
        raise InputError(
            f"{name} is constant ({y[0]:g} in all {y.size} rows): there is nothing to forecast"
        )
    if kind == "binary":
        refuse_entry(name, y, ~np.isin(y, (0.0, 1.0)), "be 0 or 1", "code the event as 1")
    trouble = _about_atoms(y, name) if kind == "continuous" else None
    if trouble is not None:
        warnings.warn(trouble, DiscreteOutcomeWarning, stacklevel=3)


def _about_atoms(y: Floats, name: str) -> str | None:
    """Return the warning about the atoms of outcomes that are forecast as continuous, if any."""
    found = discrete_kind(y)
    if found is not None:
        at = f"HurdleRegressor(at={found.atom:g}"
        advice = found.advice(
            event="ClassifierForecaster or probability= for an event, coded as 0 and 1",
            counts="CountRegressor or outcome=count for counts",
            scores="ClassifierForecaster or pmf= for ordered scores",
            amounts=f"{at}){' or chance_of_zero=' if found.atom == 0 else ''} for amounts",
            # a hurdle inside the range would not be exact (outcomes: 4.2)
            capped=f'{at}, end="high")',
            other="a separate model of that value, for example ClassifierForecaster",
        )
        return f"{name} {found.facts}, so no continuous forecast is calibrated; use {advice}"
    value, share = largest_atom(y)
    # a single row is more than 2% of fewer than 50 rows: only a repeated value is an atom
    if share <= MILD_ATOM or share * y.size < 1.5:
        return None
    return (
        f"{name} is {value:g} in {percent(share, 'up')} of the rows, so many PITs are tied; if all"
        " outcomes lie on a grid, an audit randomizes each PIT within its rounding cell"
    )


class Discrete(NamedTuple):
    """What discrete outcomes may be.

    Parameters
    ----------
    kinds : tuple of str
        Event, one or two of counts, scores and amounts, capped or other.
    facts : str
        Why they are discrete, such as `has 5 distinct values in 100 rows`.
    atom : float
        The most frequent outcome.
    """

    kinds: tuple[str, ...]
    facts: str
    atom: float

    def advice(self, **texts: str) -> str:
        """Return what to do about outcomes of these kinds, by the texts for each kind."""
        found = [texts[kind] for kind in self.kinds if texts.get(kind)]
        return " or ".join(found) or texts["other"]


def discrete_kind(y: Floats) -> Discrete | None:
    """Return what discrete outcomes may be; None if they are continuous.

    Examples
    --------
    >>> discrete_kind(np.arange(100.0) % 2).kinds, discrete_kind(np.arange(100.0))
    (('event',), None)
    """
    values = np.unique(y)
    atom, share = largest_atom(y)
    if values.size >= MIN_DISTINCT and share <= MAX_ATOM:
        return None
    is_whole = (values == np.round(values)).all() and values[0] >= 0
    has_zeros = share > MAX_ATOM and atom == values[0]
    if values.size == 2:
        return Discrete(("event",), f"has only the values {values[0]:g} and {values[1]:g}", atom)
    are_few = values.size < MIN_DISTINCT
    facts = f"is {atom:g} in {percent(share, 'up')} of the rows"
    if are_few:
        facts = f"has {values.size} distinct values in {y.size} rows"
    possible = {
        "counts": is_whole,
        "scores": are_few,
        "amounts": has_zeros and not (are_few and is_whole),
    }
    kinds = [kind for kind, is_possible in possible.items() if is_possible]
    kinds = kinds or ["capped" if atom == values[-1] else "other"]
    return Discrete(tuple(kinds), facts, atom)


def check_number(name: str, value: Any, least: float, remedy: str = "") -> float:
    """Return a finite number of at least `least`."""
    number = as_number(value)
    if not least <= number < np.inf:
        raise bad_input(name, f"be a number of at least {least:g}", short(value), remedy)
    return number


def check_horizon(horizon: Any, name: str = "horizon") -> float:
    """Return a horizon as a float; InputError if it is not a time above 0."""
    value = as_number(horizon)
    if not 0 < value < math.inf:
        raise bad_input(name, "be a time above 0", short(horizon))
    return value
