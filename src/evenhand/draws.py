"""Ids of people, and sources of the draw `r` of a randomized forecast (method: draws).

`nodes` for averages over draws, `jittered` for PIT matrices that support a guarantee, `fresh` for
one draw per row, and `KeyedDraws` for deployment, where the draw must depend on the person and the
decision, not on the request.
"""

from __future__ import annotations

import hashlib
import numbers
import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, InputError, Ints, bad_input, check_count, check_draws, short

RandomState = int | np.random.Generator | np.random.RandomState | None

MIN_KEY_BYTES = 16
"""Smallest length of a secret key in bytes: 128 bits."""

# one random key in 3,000 of 16 hexadecimal digits has fewer pairs, and practically none of 32
# digits. One repeated byte, a repeated word of up to 11 bytes and digits in order, such as
# 0123456789012345, always have fewer pairs.
MIN_KEY_PAIRS = 12
"""Smallest number of different pairs of neighbouring bytes in a key."""

FINGERPRINT = re.compile("[0-9a-f]{4}(-[0-9a-f]{4}){3}")
"""Format of the fingerprint of a key."""

MAKE_KEY = "python -c 'import secrets; print(secrets.token_hex(32))'"
"""Command that makes a secret key, for messages."""

JITTERED = "make the draws with draws.jittered(n, m)"
"""Remedy in messages about draws."""

BLOCK_ROWS = 10_000
"""Number of rows processed at once, so that temporaries need little memory."""

__all__ = ["KeyedDraws", "as_draws", "fresh", "generator", "jittered", "nodes", "one_row_each"]


# --- ids of people, and the normal form in which they are compared

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Unicode characters without a glyph that `str.isprintable` nevertheless accepts."""

FLOAT = re.compile(r"[+-]?[0-9]+(\.0+|(\.[0-9]+)?[eE]\+[0-9]+)")
"""A whole number written as a float: `17.0`, `1e+16`."""


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
    if text.isascii() and text.isprintable() and text and text == text.strip():
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


def check_person_labels(person: ArrayLike, n_samples: int) -> Ints:
    """Return one integer per row, from 0, that identifies the person; people may have many rows.

    Text labels, and integers mixed with text, follow the rules of `check_id`. Labels of a single
    numeric type are accepted unchanged.
    """
    import pandas as pd  # slow to import, and rarely needed here

    labels = np.asarray(person)
    if labels.shape != (n_samples,):
        raise bad_input("person", f"have one label per row ({n_samples})", f"shape {labels.shape}")
    missing = pd.isna(labels)
    if missing.any():
        row = np.argmax(missing)
        raise InputError(f"person[{row}] is missing; give each row the label of a person")
    if labels.dtype.kind in "OU":
        labels = np.array(
            [_label(label, f"person[{row}]") for row, label in enumerate(labels.tolist())]
        )
    return np.unique(labels, return_inverse=True)[1]


def _label(label: Any, place: str) -> str:
    if isinstance(label, float | np.floating):
        remedy = "write labels as integers or text: the text of a float depends on its formatting"
        raise bad_input(place, "be an integer or text", f"float {label!r}", remedy)
    return check_id(str(label), place)


def _shown(text: str) -> str:
    # `repr` escapes unprintable characters, but not printable ones without a glyph
    return INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", short(text))


def _name(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character')}"


# --- draws


def generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a NumPy generator from a seed, a generator, a RandomState or None (unpredictable)."""
    # scikit-learn passes legacy RandomState objects: four of their numbers seed a new generator
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise bad_input(
            "random_state", "be None, a non-negative integer or a generator", repr(random_state)
        ) from error


def nodes(m: int) -> Floats:
    """Return the midpoints of `m` equal cells of [0, 1], shape (1, m), as draws for all people.

    Examples
    --------
    >>> nodes(4)
    array([[0.125, 0.375, 0.625, 0.875]])
    """
    return (np.arange(check_count("m", m), dtype=float)[None, :] + 0.5) / m


def jittered(n_samples: int, m: int, random_state: RandomState = None) -> Floats:
    """Return one uniform draw in each of `m` equal cells for each person, shape (n, m).

    Column `j` of row `i` is uniform on `(j/m, (j+1)/m)`. The exact W1 error of a person's PITs at
    such draws never understates the pathwise error in expectation, for any forecaster; at midpoints
    it can.

    Examples
    --------
    >>> r = jittered(2, 4, random_state=0)
    >>> (r * 4).astype(int)
    array([[0, 1, 2, 3],
           [0, 1, 2, 3]])
    """
    uniform = fresh((n_samples, check_count("m", m)), random_state)
    cells: Floats = np.arange(m, dtype=float)
    # the division may round to the end of [0, 1], where quantiles are infinite
    return np.clip((cells + uniform) / m, 2.0**-60, 1 - 2.0**-53)


def fresh(shape: int | tuple[int, ...], random_state: RandomState = None) -> Floats:
    """Return independent uniform draws, strictly between 0 and 1."""
    # midpoints of 2^52 cells: exact in float64, and never 0 or 1
    return np.asarray(
        (generator(random_state).integers(0, 2**52, size=shape) + 0.5) / 2.0**52, dtype=float
    )


def as_draws(r: ArrayLike | None, n_samples: int, random_state: RandomState = None) -> Floats:
    """Return draws for `n_samples` people: fresh draws for None, otherwise the given draws.

    Parameters
    ----------
    r : None, float, array of shape (n,), (1, m) or (n, m)
        Draws strictly between 0 and 1; a number is used for all people.
    n_samples : int
        Number of people.
    random_state : int, generator or None
        Seed for fresh draws.

    Returns
    -------
    ndarray of shape (n,), (1, m) or (n, m)
    """
    if r is None:
        return fresh(n_samples, random_state)
    draws = check_draws(r)
    # a single number is the draw of all people
    if draws.ndim == 0:
        return np.full(n_samples, float(draws))
    if draws.shape == (n_samples,) or (
        draws.ndim == 2 and draws.shape[0] in (1, n_samples) and draws.shape[1] > 0
    ):
        return draws
    rule = f"be a number or have shape ({n_samples},), (1, m) or ({n_samples}, m)"
    raise bad_input("r", rule, f"shape {draws.shape}", "one row per person, one column per draw")


def sampled_rows(n: int, most: int, random: np.random.Generator) -> Ints:
    """Return the numbers of n rows, or of `most` of them chosen at random, in their order."""
    return np.sort(random.choice(n, most, replace=False)) if n > most else np.arange(n)


def one_row_each(person: ArrayLike, n_samples: int, random_state: RandomState = None) -> Ints:
    """Choose one row per person at random, and return the row numbers in increasing order.

    There is one row number per distinct label. Rows of the same person are not independent, so
    statistics that treat rows as a sample of people use one row per person.

    Examples
    --------
    >>> one_row_each(["a", "b", "b", "c"], 4, random_state=0).size
    3
    """
    labels = check_person_labels(person, n_samples)
    # the first row of each person in a random order is a random row of the person
    shuffled = generator(random_state).permutation(n_samples)
    _, first = np.unique(labels[shuffled], return_index=True)
    return np.sort(shuffled[first]).astype(int)


class KeyedDraws:
    """Draws computed as a keyed hash of a person's id.

    They are reproducible with the key and unpredictable without it.

    A draw does not depend on row order or batch, and two rows with the same id have the same draw.
    Another key or context gives an unrelated draw. Somebody who repeats a request gets the same
    draw again.

    Parameters
    ----------
    key : bytes
        Secret of at least 16 bytes, fixed before ids are known. A key with fewer than 12 different
        pairs of neighbouring bytes, such as a repeated byte, is refused.
    context : str, default ""
        Name of the decision or period for which the draws are made. Change it with each new
        decision: the same draw in every decision would make good or bad luck permanent.

    Attributes
    ----------
    fingerprint : str
        Identifier of the key that made a draw: 16 hexadecimal digits with dashes, which depend on
        the key only.

    Raises
    ------
    InputError
        If the key or the context cannot be used; on a call, if an id is a float, empty, or contains
        a hidden character.

    Notes
    -----
    A draw is computed from 52 bits of the BLAKE2b hash of the length-prefixed context and the id,
    plus one half, so 0 and 1 cannot occur. Ids are integers or text: `1` and `"1"` are the same id,
    and text is compared in NFC form. Control and format characters, characters without a glyph and
    white space other than ordinary spaces inside an id are refused, since two ids that look the
    same would give one person two draws.

    The fingerprint is the BLAKE2b hash of an empty message with the same key and another
    personalization. It allows a guess of the key to be tested, as one known draw does, and reveals
    nothing else.

    Examples
    --------
    >>> draws = KeyedDraws(b"sixteen bytes or more", context="2026-11")
    >>> first, again = draws([17, "17"])
    >>> bool(first == again), bool(0 < first < 1)
    (True, True)
    >>> draws.fingerprint == KeyedDraws(b"sixteen bytes or more", context="2026-12").fingerprint
    True
    """

    def __init__(self, key: bytes, context: str = "") -> None:
        key = check_key(key)
        # BLAKE2b keys have at most 64 bytes; longer keys are hashed first, as in HMAC
        secret = key if len(key) <= 64 else hashlib.blake2b(key).digest()
        if not isinstance(context, str):
            raise bad_input("context", "be text", repr(context))
        try:
            context.encode()
        except UnicodeEncodeError as error:
            raise bad_input("context", "be valid Unicode text", ascii(context)) from error
        # one context, however its accents are written: it has the same draws
        self.context = id_text(context)
        # with dashes, as csv readers would parse 1 in 1,000 fingerprints as a number, such as
        # 12345678e1234567
        self.fingerprint = (
            hashlib.blake2b(key=secret, digest_size=8, person=b"evenhand key").digest().hex("-", 2)
        )
        self._names = hashlib.blake2b(key=secret, digest_size=16, person=b"evenhand person")
        self._draws, self._ties = (
            _bound_to(one, secret) for one in (self.context, f"{self.context}/ties")
        )

    def __call__(self, ids: Iterable[Any]) -> Floats:
        """Return the draw of each id, shape (n,)."""
        return _uniform(_hashed(self._draws, ids))

    def ties(self, ids: Iterable[Any]) -> Floats:
        """Return the position of each id's outcome in its PIT cell, shape (n,).

        It is keyed like the draw, in the context followed by "/ties": replayable, and independent
        of the draw, as the same number would couple both (outcomes: 4.3).

        Examples
        --------
        >>> draws = KeyedDraws(b"sixteen bytes or more", context="2026-11")
        >>> bool(draws.ties([17])[0] == draws([17])[0])
        False
        """
        return _uniform(_hashed(self._ties, ids))

    def pseudonyms(self, ids: Iterable[Any]) -> list[str]:
        """Return a keyed hash of each id, 32 hexadecimal digits, by which logs name people.

        It depends on the key and the id only, not on the context, and reveals nothing of the id or
        the draw to anybody without the key.

        Examples
        --------
        >>> first, again = KeyedDraws(b"sixteen bytes or more").pseudonyms([17, "17"])
        >>> first == again, len(first)
        (True, 32)
        """
        return [digest.hex() for digest in _hashed(self._names, ids)]

    def __repr__(self) -> str:
        return f"KeyedDraws(key=<secret>, context={self.context!r})"


def _bound_to(context: str, secret: bytes) -> hashlib.blake2b:
    """Return the keyed hash of a context, to which an id is added."""
    prefix = context.encode()
    # the length prefix separates context and id: no other pair of texts gives the same bytes
    start = len(prefix).to_bytes(8, "big") + prefix
    return hashlib.blake2b(start, key=secret, digest_size=8, person=b"evenhand draw")


def _hashed(keyed: hashlib.blake2b, ids: Iterable[Any]) -> list[bytes]:
    """Return the keyed hash of each id."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        got = f"the single value {ids!r}"
        raise bad_input("ids", "be a sequence of ids", got, "wrap it in a list")
    found = []
    for i, value in enumerate(ids):
        own = keyed.copy()
        own.update(check_person(value, f"ids[{i}]").encode())
        found.append(own.digest())
    return found


def _uniform(digests: list[bytes]) -> Floats:
    """Return a number between 0 and 1 for each hash."""
    # the 52 leading bits, in the middle of their cell as in `fresh`
    bits = np.frombuffer(b"".join(digests), dtype=">u8") >> 12
    return (bits.astype(float) + 0.5) / 2.0**52


def check_person(value: Any, place: str) -> str:
    """Return the id of a person as text, the same for 17 and "17"; InputError for other types."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral | str):
        remedy = "convert ids to integers or text: a float id depends on its formatting"
        raise bad_input(place, "be an integer or text", f"{type(value).__name__} {value!r}", remedy)
    return check_id(value if isinstance(value, str) else int(value), place)


def check_key(key: bytes) -> bytes:
    """Return a key if it can be secret; no message contains any part of it."""
    if not isinstance(key, bytes | bytearray):
        raise bad_input("key", "be bytes", type(key).__name__, "convert text with text.encode()")
    whole = bytes(key)
    if len(whole) < MIN_KEY_BYTES:
        rule = f"have at least {MIN_KEY_BYTES} bytes"
        raise bad_input("key", rule, len(whole), f"make one with: {MAKE_KEY}")
    n_pairs = len(set(pairwise(whole)))
    if n_pairs < MIN_KEY_PAIRS:
        rule = f"have at least {MIN_KEY_PAIRS} different pairs of neighbouring bytes"
        remedy = f"this key is easy to guess; make one with: {MAKE_KEY}"
        raise bad_input("key", rule, n_pairs, remedy)
    return whole


# --- draws that can support a guarantee (method: draws)


def check_own_draws(draws: Floats, rows: Ints | None = None) -> None:
    """Refuse draws that cannot support a guarantee (method: draws).

    Draws must be fresh for each person of `rows` (all by default) and, for m > 1, one in each of m
    equal cells. Shared draws, or draws that cover [0, 1] unevenly, understate errors.
    """
    n, m = draws.shape
    for start in range(0, n, BLOCK_ROWS):
        # draws of draws.jittered are in the order of the cells; only others need a sort
        scaled = draws[start : start + BLOCK_ROWS] * m
        if (np.floor(scaled) == np.arange(m)).all():
            continue
        cells = np.sort(scaled, axis=-1) - np.arange(m)
        elsewhere = ((cells < -1e-9) | (cells > 1 + 1e-9)).any(axis=-1)
        if elsewhere.any():
            place = f"r[{start + np.argmax(elsewhere)}]"
            raise InputError(
                f"{place} does not have one draw in each of {m} equal cells of [0, 1]; {JITTERED}"
            )
    # continuous draws of several people coincide with probability 0
    rows = np.arange(n) if rows is None else rows
    order = rows[np.argsort(draws[rows, 0], kind="stable")]
    twins = np.flatnonzero(np.diff(draws[order, 0]) == 0)
    same = twins[(draws[order[twins]] == draws[order[twins + 1]]).all(axis=-1)]
    rule = "contain fresh draws for each person"
    if same.size == rows.size - 1 > 0:
        raise bad_input("r", rule, "the same draws for all people", JITTERED)
    if same.size:
        got = f"the same draws in rows {order[same[0]]} and {order[same[0] + 1]}"
        remedy = "if these are rows of the same person, pass their labels as person"
        raise bad_input("r", rule, got, remedy)
