"""Validation of ids of people, and the normal form in which ids are compared."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import InputError, bad_input

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Unicode characters without a glyph that `str.isprintable` nevertheless accepts."""

FLOAT = re.compile(r"[+-]?[0-9]+(\.0+|(\.[0-9]+)?[eE]\+[0-9]+)")
"""A whole number written as a float: `17.0`, `1e+16`."""

LONGEST_SHOWN = 60


def id_text(value: str | int) -> str:
    """Return an id as the text used for comparison, with composed accents (NFC).

    Examples
    --------
    >>> id_text(17) == id_text("17"), id_text("Zoe\u0308") == id_text("Zo\u00eb")
    (True, True)
    """
    text = str(value)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def check_id(value: str | int, place: str) -> str:
    """Return an id as the text used for comparison; InputError if it looks like another id.

    Two ids that look alike would give one person two draws. Control characters, format characters,
    characters without a glyph and whitespace other than the ordinary space are therefore refused.
    Also refused are ordinary spaces at the ends, and whole numbers written as floats: `17.0` would
    not be the same person as `17`.

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
    # most ids return here: each check below takes several times as long
    if text.isascii() and text.isprintable() and text and text[0] != " " and text[-1] != " ":
        return text
    if not text.strip():
        raise bad_input(place, "not be empty", repr(text), "fill it or drop the row")
    # half of a surrogate pair cannot be hashed to a draw, nor written to a file
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_input(
            place, "be valid Unicode text", ascii(text), "read the ids with the right encoding"
        ) from error
    for position, character in enumerate(text, start=1):
        if not character.isprintable() or INVISIBLE.match(character):
            got = f"{_shown(text)} ({_name(character)}, character {position})"
            raise bad_input(place, "have no hidden characters", got, "remove it")
    if text != text.strip():
        raise bad_input(place, "not begin or end with a blank", _shown(text), "remove it")
    return text


def check_person_labels(person: ArrayLike, n_samples: int) -> NDArray[np.intp]:
    """Return one integer per row, from 0, that identifies the person; people may have many rows.

    Text labels, and integers mixed with text, follow the rules of `check_id`. Labels of a single
    numeric type are accepted unchanged.
    """
    import pandas as pd  # slow to import, and rarely needed here

    labels = np.asarray(person)
    if labels.shape != (n_samples,):
        raise bad_input("person", f"have one label per row ({n_samples})", f"shape {labels.shape}")
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(f"person[{row}] is missing; give each row the label of a person")
    if labels.dtype.kind in "OU":
        labels = np.array(
            [_label(label, f"person[{row}]") for row, label in enumerate(labels.tolist())]
        )
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)


def _label(label: Any, place: str) -> str:
    if isinstance(label, float | np.floating):
        remedy = "write labels as integers or text: the text of a float depends on its formatting"
        raise bad_input(place, "be an integer or text", f"float {label!r}", remedy)
    return check_id(str(label), place)


def _shown(text: str) -> str:
    # `repr` escapes unprintable characters, but not printable ones without a glyph
    shown = INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", repr(text))
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 3] + "..."


def _name(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character')}"
