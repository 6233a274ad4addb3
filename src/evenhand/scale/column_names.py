"""Names of columns with forecasts, and the levels, values and times at their ends."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

from evenhand._format import option_name
from evenhand._validate import InputError, bad_input, check_column, did_you_mean, first_names, short

LEVEL = re.compile(r"(0?\.[0-9]+)$")
VALUE = re.compile(r"_?(-?[0-9]+(?:\.[0-9]+)?)$")
TIME = re.compile(r"[_-]?([0-9]+(?:\.[0-9]+)?)$")
"""End of the name of a column: the level of a quantile, a value of the outcome, a time."""

NUMBERED = re.compile(r"(.*?)[._-]*[0-9][0-9.]*")
"""Name of a column that ends in a number, after its prefix."""


def listed_columns(present: list[str], listed: str, option: str, source: str) -> list[str]:
    """Return comma-separated columns, or all columns with a common prefix."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    # a single word that is not a column is a prefix
    if len(names) == 1 and names[0] not in present:
        prefix = names[0]
        names = [name for name in present if _has_prefix(name, prefix, option)]
        if not names:
            raise _no_such_prefix(prefix, present, option, source)
    for name in names:
        check_column(name, present, source)
    if len(names) < 2:
        remedy = "separate them by commas, or give the common prefix of their names"
        raise bad_input(option_name(option), "name at least two columns", short(listed), remedy)
    return _each_once(names, option)


def _each_once(names: list[str], option: str) -> list[str]:
    """Return columns that an option names; refuse a column named twice."""
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise bad_input(option_name(option), "name each column once", short(name), "leave one out")
    return names


def _no_such_prefix(prefix: str, present: list[str], option: str, source: str) -> InputError:
    """Return the error for a word that is neither a column nor a prefix of columns."""
    example = {"quantiles": "0.5", "survival": "30"}.get(option, "1")
    prefixes = [match.group(1) for name in present if (match := NUMBERED.fullmatch(name))]
    remedy = did_you_mean(prefix, [*present, *prefixes]) or "name some of these, or their prefix"
    return InputError(
        f"{source} has no column {short(prefix)} and no columns with this prefix, such as"
        f" {prefix[:20]}{example}, only {first_names(present)}; {remedy}"
    )


def _has_prefix(name: str, prefix: str, option: str) -> bool:
    rest = name[len(prefix) :]
    if not name.startswith(prefix):
        return False
    # the rest is the value: other columns may begin with the same letter, as `p_value` with `p`
    if option in ("pmf", "survival"):
        return (VALUE if option == "pmf" else TIME).fullmatch(rest) is not None
    return rest[:1] in tuple("0123456789._")


def quantile_level(name: str) -> float:
    """Return the level at the end of the name of a column of quantiles."""
    found = LEVEL.search(name)
    if found is None:
        raise bad_input(
            "--quantiles", "name columns that end in their level, such as q0.05", short(name)
        )
    return float(found.group(1))


def pmf_value(name: str) -> float:
    """Return the value of the outcome at the end of the name of a column of probabilities.

    Examples
    --------
    >>> [pmf_value(name) for name in ("p0", "p_1", "p-2", "p_-3", "p0.5")]
    [0.0, 1.0, -2.0, -3.0, 0.5]
    """
    found = VALUE.search(name)
    if found is None:
        rule = "name columns that end in a value of the outcome, such as p0 or p_1"
        raise bad_input("--pmf", rule, short(name))
    return float(found.group(1))


def by_value(names: list[str]) -> list[str]:
    """Return columns of probabilities by value of the outcome; refuse two columns for one value."""
    ordered = sorted(names, key=pmf_value)
    for name, after in pairwise(ordered):
        if pmf_value(name) == pmf_value(after):
            got = f"{name!r} and {after!r}"
            raise bad_input("--pmf", "name one column for each value", got, "leave one out")
    return ordered


def survival_times(listed: str, present: list[str], source: str) -> dict[str, float]:
    """Return columns of survival probabilities with their times, by increasing time.

    Parameters
    ----------
    listed : str
        Comma-separated columns, each as `TIME=COLUMN` or by a name that ends in its time; or the
        common prefix of such names.
    present : list of str
        Columns of the table.
    source : str
        File name for messages.

    Examples
    --------
    >>> survival_times("60=year2,30=year1", ["year1", "year2"], "t.csv")
    {'year1': 30.0, 'year2': 60.0}
    >>> survival_times("s", ["s0.5", "s_2", "sex"], "t.csv")
    {'s0.5': 0.5, 's_2': 2.0}
    """
    found: list[tuple[float, str]] = []
    items = [item.strip() for item in listed.split(",") if item.strip()]
    if len(items) == 1 and "=" not in items[0] and items[0] not in present:
        items = listed_columns(present, items[0], "survival", source)
    for item in items:
        time, name = _time_and_column(item, present)
        check_column(name, present, source)
        found.append((time, name))
    if not found:
        raise bad_input("--survival", "name at least one column", short(listed))
    found.sort()
    _each_once([name for _, name in found], "survival")
    for (time, name), (after, other) in pairwise(found):
        if time == after:
            got = f"{name!r} and {other!r} for {time:g}"
            raise bad_input("--survival", "name one column for each time", got, "leave one out")
    return {name: time for time, name in found}


def _time_and_column(item: str, present: list[str]) -> tuple[float, str]:
    """Return the time and the column of `TIME=COLUMN`, or of a name that ends in its time."""
    text, equals, name = (part.strip() for part in item.partition("="))
    rule = "name columns as TIME=COLUMN, such as 30=s30, or by names that end in their time"
    # a name may contain the sign
    if not equals or item in present:
        match = TIME.search(item)
        if match is None:
            raise bad_input("--survival", rule, short(item))
        return float(match.group(1)), item
    try:
        time = float(text)
    except ValueError:
        raise bad_input("--survival", rule, short(item)) from None
    if not (math.isfinite(time) and time >= 0):
        raise bad_input("--survival", "have times of at least 0", short(item))
    return time, name
