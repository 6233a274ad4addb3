"""Numbers as text: one way to print a share, an error, a bound, an interval or a given number.

`percent`, `points`, `number` and, in sentences, `plain_number` write estimates. `at_most`,
`at_least` and `band` write bounds and intervals with one of these, rounded away from the claim, so
that a printed bound is valid. `in_full` writes shares that were given, `number_in_full` other
numbers that were given. Rounding is that of decimals, not of binary fractions: 0.1075 is 10.75%.
"""

from __future__ import annotations

import html
import math
import reprlib
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import partial
from typing import Any, Literal, TypeGuard

LEAST_FLOOR = 0.01
"""Least lower bound of a coverage that texts give; a smaller one is uninformative."""

PARTS = ("half", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Names of the parts that 2 to 10 groups divide people into."""

Toward = Literal["nearest", "down", "up"]
"""Estimates are rounded to the nearest; lower ends of intervals and lower bounds down, upper up."""

Show = Callable[[float | None, Toward], str]
"""Writes a number that may be unknown: `percent`, `points`, `number` or `plain_number`."""

RULES = {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}

# a value this near to a decimal is taken for it, so that 0.1 + 0.2 is at most 30%, not 30.1%
FUZZ = 2.0**-49
"""Relative size of rounding errors of float64: eight units in the last place."""

UNKNOWN = "-"

EXACT = Context(prec=1200)
"""Digits enough for any float64."""


class Summarized:
    """A result whose summary is shown by `print` and in notebooks."""

    def summary(self) -> str:
        """Return the result as text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"


class OneLine:
    """A dataclass shown in one line: its numbers and texts, and the shapes of its arrays."""

    def __repr__(self) -> str:
        plain = {k: one for k, one in vars(self).items() if isinstance(one, str | int | float)}
        shapes = {k: one.shape for k, one in vars(self).items() if hasattr(one, "shape")}
        return one_line(self, **shapes | plain)


def one_line(of: object, **facts: Any) -> str:
    """Write a result in one line: its type and facts, numbers to four digits.

    Facts that are None are left out.

    Examples
    --------
    >>> one_line(Summarized(), n_samples=177, error=0.123456, name="b")
    "Summarized(n_samples=177, error=0.1235, name='b')"
    """
    listed = ", ".join(
        f"{name}={_fact(value)}" for name, value in facts.items() if value is not None
    )
    return f"{type(of).__name__}({listed})"


def digits_of(value: float, digits: int, toward: Toward) -> float:
    """Round to so many significant digits; a bound in the direction in which it stays valid.

    Examples
    --------
    >>> digits_of(0.296412, 4, "up"), digits_of(0.99999, 4, "down")
    (0.2965, 0.9999)
    """
    if not math.isfinite(value):
        return value
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return float(_rounded(value, decimals, 1, toward))


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = 60  # characters: a result has several facts on one line
    return shown.repr(value)


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether there is a finite value."""
    return value is not None and math.isfinite(value)


def in_full(share: float | None, toward: Toward = "up", decimals: int = 2) -> str:
    """Write a share that was given, such as the least size of a group, in full.

    A long one is rounded up. For group sizes that is the valid direction: a bound for groups of a
    third also holds for groups of 33.34%.

    Examples
    --------
    >>> in_full(0.2), in_full(0.125), in_full(1 / 3)
    ('20%', '12.5%', '33.34%')
    >>> confidence_in_full(0.95), confidence_in_full(0.99999), confidence_in_full(1 - 0.05 / 3)
    ('95%', '99.999%', '98.33%')
    """
    if not is_known(share):
        return UNKNOWN
    # all decimals if there are at most 12
    full = _rounded(share, 12, 100, toward)
    is_other = full != _rounded(share, 12, 100, "up" if toward == "down" else "down")
    # a confidence just below 1 must not be printed as 100%
    if is_other or (full == 100 and share != 1):
        full = EXACT.multiply(Decimal(repr(float(share))), Decimal(100))
        return f"{full.quantize(Decimal(1).scaleb(-decimals), RULES[toward], EXACT):f}%"
    return f"{full.normalize():f}%"


confidence_in_full = partial(in_full, toward="down")
"""Writes a confidence in full; it is never rounded up."""


def points_in_full(share: float) -> str:
    """Write a share as percentage points in full, without a unit.

    One with more digits has one decimal, as errors have, or two up to half a point.

    Examples
    --------
    >>> points_in_full(0.0125), points_in_full(0.1 / 7), points_in_full(0.01 / 7)
    ('1.25', '1.5', '0.15')
    """
    return in_full(share, decimals=1 + (share <= 0.005)).removesuffix("%")


def percent(
    share: float | None, toward: Toward = "nearest", decimals: int = 1, sign: str = "%"
) -> str:
    """Write an estimated share, or an end of its interval.

    Examples
    --------
    >>> percent(0.8049), percent(0.8041, "up"), percent(0.8041, decimals=0), percent(None)
    ('80.5%', '80.5%', '80%', '-')
    """
    return _fixed(share, decimals, toward, unit=100) + (sign if is_known(share) else "")


points = partial(percent, sign="")
"""Writes an estimated error in percentage points, without a unit."""


def ratio(value: float | None, toward: Toward = "nearest") -> str:
    """Write a ratio or a slope with two decimals."""
    return _fixed(value, 2, toward)


def log_score(value: float | None) -> str:
    """Write a log score: three decimals at any size, since only differences of scores count.

    Examples
    --------
    >>> log_score(9.6312), log_score(10.04)
    ('9.631', '10.040')
    """
    return _fixed(value, 3, "nearest")


def number(value: float | None, toward: Toward = "nearest") -> str:
    """Write an estimate in its own unit: three decimals, or three digits from 10 on.

    Examples
    --------
    >>> number(0.12345), number(12.345), number(1234.5), number(0.00012345, "up")
    ('0.123', '12.3', '1,234', '0.00013')
    """
    if is_known(value) and 0 < abs(value) < 0.001:
        return f"{digits_of(value, 2, toward):.2g}"
    if is_known(value) and 10 <= abs(value) < 1000:
        return plain_number(value, toward)
    return _fixed(value, 3 if is_known(value) and abs(value) < 10 else 0, toward)


def plain_number(value: float | None, toward: Toward = "nearest") -> str:
    """Write a number for a sentence: three digits without trailing zeros.

    Examples
    --------
    >>> plain_number(7951.2), plain_number(0.31049)
    ('7,950', '0.31')
    """
    return f"{digits_of(value, 3, toward):,.10g}" if is_known(value) else UNKNOWN


def number_in_full(value: float | None) -> str:
    """Write a number that was given, such as a horizon or an atom, in full.

    Examples
    --------
    >>> number_in_full(1825.0), number_in_full(0.5), number_in_full(12345.678)
    ('1,825', '0.5', '12,345.678')
    """
    return f"{value + 0.0:,.12g}" if is_known(value) else UNKNOWN


def at_most(value: float | None, show: Show = points) -> str:
    """Write an upper bound, of an error in percentage points unless `show` writes another number.

    Examples
    --------
    >>> at_most(0.1301), at_most(0.13), at_most(0.1 + 0.2), at_most(0.1301, percent), at_most(None)
    ('13.1', '13.0', '30.0', '13.1%', '-')
    """
    return show(value, "up")


def at_least(value: float | None, show: Show = points) -> str:
    """Write a lower bound, of an error in percentage points unless `show` writes another number.

    Examples
    --------
    >>> at_least(0.7489), at_least(0.7489, percent)
    ('74.8', '74.8%')
    """
    return show(value, "down")


def band(show: Show, low: float | None, high: float | None) -> str:
    """Write both ends of an interval, each rounded outwards.

    Examples
    --------
    >>> band(points, 0.1234, 0.1234), band(points, None, 0.2)
    ('12.3 to 12.4', '-')
    """
    are_known = is_known(low) and is_known(high)
    return f"{at_least(low, show)} to {at_most(high, show)}" if are_known else UNKNOWN


def is_trivial(coverage: float | None) -> bool:
    """Whether an upper limit of a coverage prints as 100%, so that it limits nothing."""
    return at_most(coverage, percent) == "100.0%"


def is_largest(error: float | None) -> bool:
    """Whether a bound of an error prints as the largest one, so that it is none."""
    return at_most(error) == at_most(0.5)


def p_value(value: float) -> str:
    """Write a p-value for a sentence, rounded up and never 0.

    Examples
    --------
    >>> p_value(0.01231), p_value(1e-9)
    ('p = 0.0124', 'p < 0.0001')
    """
    return "p < 0.0001" if value < 0.0001 else f"p = {_fixed(value, 4, 'up')}"


def whole(n: int | None) -> str:
    """Write a count, thousands with commas."""
    return UNKNOWN if n is None else f"{n:,}"


def count(n: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> count(1, "row"), count(2000, "person", "people")
    ('1 row', '2,000 people')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def and_more(names: Iterable[str], most: int = 20) -> str:
    """Write the first names of a list, and how many more there are.

    Examples
    --------
    >>> and_more(["a", "b", "c", "d"], 2), and_more(["a"], 2)
    ('a, b and 2 more', 'a')
    """
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _fixed(value: float | None, decimals: int, toward: Toward, unit: float = 1) -> str:
    """Write `unit * value` with so many decimals, thousands with commas."""
    return (
        f"{_rounded(value, decimals, unit, toward):,.{decimals}f}" if is_known(value) else UNKNOWN
    )


def _rounded(value: float, decimals: int, unit: float, toward: Toward) -> Decimal:
    """Return `unit * value` to so many decimals, without rounding errors of floats."""
    # repr gives the shortest decimal that is this float: 0.1075, where the float itself is less
    exact = EXACT.multiply(Decimal(repr(float(value))), Decimal(unit))
    place = Decimal(1).scaleb(-decimals)
    nearest = exact.quantize(place, ROUND_HALF_EVEN, EXACT)
    if abs(nearest - exact) > abs(exact) * Decimal(FUZZ):
        nearest = exact.quantize(place, RULES[toward], EXACT)
    # a negative zero would be printed with a minus
    return nearest if nearest else Decimal(0).scaleb(-decimals)


def option_name(parameter: str) -> str:
    """Return the option of the command that sets a parameter.

    Examples
    --------
    >>> option_name("max_price")
    '--max-price'
    """
    return "--" + parameter.replace("_", "-")


def joined(texts: Sequence[str]) -> str:
    """Join texts by commas and a final "and".

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last
