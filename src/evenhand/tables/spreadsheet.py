"""Protection of csv cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""Beginning of a cell that a spreadsheet may run, also with full-width characters, or of the
protected form of such a cell."""

NEGATIVE = re.compile("-[0-9]+(\\.[0-9]+)?(e-?[0-9]+)?")
"""Negative numbers, which a spreadsheet does not run."""


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Protect text cells and column names of a table that a spreadsheet would run as formulas.

    Examples
    --------
    >>> table = pd.DataFrame({"id": ["@ada", "-5", "ben"], "mean": [-0.5, 1.0, 2.0]})
    >>> spreadsheet_safe(table)["id"].tolist()
    ["'@ada", '-5', 'ben']
    """
    # column names are cells of the file as well
    named = frame.rename(columns=guarded)
    texts = [name for name, kind in named.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    for name in texts:
        named[name] = named[name].map(guarded)
    return named


def guarded(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet might run as a formula.

    A text that already has such an apostrophe gets another, so that no two texts are written alike
    and `unguarded` can undo it. Negative numbers are unchanged: a spreadsheet shows their value.

    Examples
    --------
    >>> [guarded(text) for text in ("=1+1", "'=1+1", "'t Hooft", "-5.2e-3", "-5+1", 7)]
    ["'=1+1", "''=1+1", "'t Hooft", '-5.2e-3', "'-5+1", 7]
    """
    if isinstance(value, str) and FORMULA.match(value) and not NEGATIVE.fullmatch(value):
        return f"'{value}"
    return value


def unguarded(text: str) -> str:
    """Return the original text from the output of `guarded`.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("'t Hooft")
    ('=1+1', "'t Hooft")
    """
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text
