"""Text of rules on columns: parsing against the known columns of a table, and quoting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evenhand._validate import InputError, bad_input, check_column
from evenhand.columns.groups import Group, Operator

OPERATORS: tuple[tuple[str, Operator], ...] = (
    ("is not missing", "present"),
    ("is missing", "missing"),
    ("present", "present"),
    ("missing", "missing"),
    ("is not", "!="),
    ("is", "="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("==", "="),
    ("=", "="),
    ("<", "<"),
    (">", ">"),
)
"""Operators as text. An operator that begins with another one comes before it."""

OR_MISSING = "(or missing)"

LOOKS_LIKE_COMPARISON = re.compile(r"[<>=]|\bis\b|\bmissing\b|\bpresent\b")

AND = re.compile(" and ")

JOINS = re.compile(r"\s(?:and|or)\s", re.IGNORECASE)
"""Words between comparisons. Of these only "and" is one of the language: "or" is refused."""

MOST_CONDITIONS = 100
"""Most conditions of a rule, which are parsed one within another."""

Comparison = tuple[Group, bool]
"""A comparison, and whether missing values meet it, too."""


def parse_comparisons(text: str, columns: Sequence[str], source: str) -> list[Comparison]:
    """Parse comparisons joined by `and`.

    Parameters
    ----------
    text : str
        The rule.
    columns : sequence of str
        Columns of the table.
    source : str
        Name of the table, for messages.

    Raises
    ------
    InputError
        If a column is unknown, or an operator or a value is missing.

    Examples
    --------
    >>> [(group, _)] = parse_comparisons("age and sex = 2", ["age and sex"], "a.csv")
    >>> group.column, group.value
    ('age and sex', '2')
    """
    if text.count(" and ") >= MOST_CONDITIONS:
        got = f"{text.count(' and ') + 1:,}"
        raise bad_input("a rule", f"have at most {MOST_CONDITIONS} conditions", got)
    # longer names first: the column "age and sex" takes precedence over the column "age"
    ordered = sorted(columns, key=len, reverse=True)
    found = next(_parses(text.strip(), ordered), None)
    if found is None:
        raise _error(text, columns, source)
    return found


def as_value(value: str) -> str:
    """Return a value as `parse_comparisons` reads it: in quotes where it needs them.

    Examples
    --------
    >>> print(as_value("cook"), as_value("a and b = c"))
    cook "a and b = c"
    """
    is_trimmed = value == value.strip() != "" and not value.endswith(OR_MISSING)
    if is_trimmed and '"' not in value and not JOINS.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _parses(text: str, columns: Sequence[str]) -> Iterator[list[Comparison]]:
    """Yield the ways to read a text as comparisons, the one with the shortest values first."""
    for column in columns:
        if not text.startswith(column):
            continue
        after = text[len(column) :]
        for word, operator in OPERATORS:
            # a word needs spaces around it, a sign does not
            pattern = rf"\s+{word}(?=\s|$)" if word[0].isalpha() else rf"\s*{word}"
            at = re.match(pattern, after)
            if at:
                yield from _with_value(Group(column, operator), after[at.end() :], columns)


def _with_value(group: Group, rest: str, columns: Sequence[str]) -> Iterator[list[Comparison]]:
    """Yield the readings of a text that begins with the value of a comparison."""
    needs_value = group.operator not in ("missing", "present")
    # an order compares numbers and dates, which are checked with the column
    joins = JOINS if group.operator in ("=", "!=") else AND
    for value, end in _values(rest, joins) if needs_value else [(None, rest)]:
        remaining = end.strip()
        or_missing = remaining.startswith(OR_MISSING)
        remaining = remaining.removeprefix(OR_MISSING).strip() if or_missing else remaining
        first = Group(group.column, group.operator, value), or_missing
        if not remaining:
            yield [first]
        elif remaining.startswith("and "):
            others = _parses(remaining.removeprefix("and ").strip(), columns)
            yield from ([first, *more] for more in others)


def _values(text: str, joins: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield each value that a text may begin with, and the text after it."""
    quoted = re.match(r'\s*"((?:[^"\\]|\\.)*)"', text)
    if quoted:
        yield re.sub(r"\\(.)", r"\1", quoted[1]), text[quoted.end() :]
        return
    if text and not text[0].isspace() and LOOKS_LIKE_COMPARISON.match(text):
        return
    for end in [found.start() for found in re.finditer(r" and ", text)] + [len(text)]:
        value = text[:end].strip()
        # "job = cook and sexx = 2" is a misspelled column, not a value; so is "... or sex = 1"
        is_misread = any(map(LOOKS_LIKE_COMPARISON.search, joins.split(value)[1:]))
        if not value or value.endswith(" and") or is_misread:
            return
        ending = OR_MISSING if value.endswith(OR_MISSING) else ""
        yield value.removesuffix(ending).strip(), ending + text[end:]


def _error(text: str, columns: Sequence[str], source: str) -> InputError:
    """Return the error of a text that cannot be parsed, about its first wrong comparison."""
    for part in text.split(" and "):
        found = re.match(r"\s*(.+?)\s*(?:[<>=!]|\bis\b|\bmissing\b|\bpresent\b)", part)
        if found and found[1] not in columns:
            try:
                check_column(found[1], columns, source)
            except InputError as error:
                return error
    rule = "be comparisons such as 'bmi > 0.03 and sex = 2'"
    remedy = 'join them by "and", and put values that contain operators in double quotes'
    return bad_input("a rule", rule, repr(text), remedy)
