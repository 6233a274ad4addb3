"""Ids of people: accepted texts, and their normal form by which they are compared."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import bad_input

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters of Unicode that have no glyph although `str.isprintable` accepts them."""

FLOAT = re.compile(r"[+-]?[0-9]+(\.0+|(\.[0-9]+)?[eE]\+[0-9]+)")
"""A whole number in the form of a column of floats: `17.0`, `1e+16`."""

LONGEST_SHOWN = 60


def id_text(value: str | int) -> str:
    """Return the text by which an id is compared, with accents in composed form (NFC).

    Examples
    --------
    >>> id_text(17) == id_text("17"), id_text("Zoe\u0308") == id_text("Zo\u00eb")
    (True, True)
    """
    text = str(value)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def check_id(value: str | int, place: str) -> str:
    """Return the text by which an id is compared; InputError if it looks like another id.

    Two ids that look alike would give one person two draws. So control and format characters,
    characters without a glyph, and blanks other than the ordinary space are refused anywhere,
    ordinary spaces at the ends, and whole numbers in the form of floats: `17.0` would be another
    person than `17`.

    Examples
    --------
    >>> check_id("ada", "ids[0]")
    'ada'
    >>> check_id("ada ", "ids[1]")
    Traceback (most recent call last):
    evenhand._validate.InputError: ids[1] must not begin or end with a blank, got 'ada '; remove it
    """
    text = id_text(value)
    if FLOAT.fullmatch(text):
        remedy = (
            "write ids as whole numbers or as text: a column of floats changes and loses digits"
        )
        raise bad_input(place, "not be a whole number written as a float", repr(text), remedy)
    # most ids end here: each check below takes several times as long
    if text.isascii() and text.isprintable() and text and text[0] != " " and text[-1] != " ":
        return text
    if not text.strip():
        raise bad_input(place, "not be empty", repr(text))
    # half of a surrogate pair cannot be hashed to a draw, nor written to a file
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_input(
            place, "be text that UTF-8 can hold", ascii(text), "read the ids again"
        ) from error
    for position, character in enumerate(text, start=1):
        if not character.isprintable() or INVISIBLE.match(character):
            got = f"{_shown(text)} ({_name(character)}, character {position})"
            raise bad_input(place, "have no hidden character", got, "remove it")
    if text != text.strip():
        raise bad_input(place, "not begin or end with a blank", _shown(text), "remove it")
    return text


def check_cluster(cluster: ArrayLike, n_samples: int) -> NDArray[np.intp]:
    """Return labels of people as numbers from 0, one per row; a person may have several rows.

    Text and integers among text follow the rules of `check_id`; labels of one numeric type are
    taken as they are.
    """
    import pandas as pd  # slow to import, and rarely needed here

    labels = np.asarray(cluster)
    if labels.shape != (n_samples,):
        raise bad_input("cluster", f"have one label per row ({n_samples})", f"shape {labels.shape}")
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        row = int(np.argmax(missing))
        raise bad_input(
            f"cluster[{row}]", "name a person", "a missing value", "give each row a label"
        )
    if labels.dtype.kind in "OU":
        labels = np.array(
            [_label(label, f"cluster[{row}]") for row, label in enumerate(labels.tolist())]
        )
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)


def _label(label: Any, place: str) -> str:
    if isinstance(label, float | np.floating):
        remedy = "write labels as integers or text: a float changes with its formatting"
        raise bad_input(place, "be an integer or text", f"float {label!r}", remedy)
    return check_id(str(label), place)


def _shown(text: str) -> str:
    # `repr` escapes what is not printable, which leaves characters that have no glyph
    shown = INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", repr(text))
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 3] + "..."


def _name(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character')}"
