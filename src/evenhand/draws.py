"""Sources of the draw `r` of a randomized forecast (method: draws).

`nodes` for averages over draws, `jittered` for PIT matrices that carry a guarantee, `fresh` for one
draw per row, `KeyedDraws` for use: there the draw belongs to the person and the decision, not to
the request.
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
from numpy.typing import ArrayLike, NDArray

from evenhand._ids import check_cluster, check_id
from evenhand._validate import Floats, bad_input, check_count, check_draws

RandomState = int | np.random.Generator | np.random.RandomState | None

MIN_KEY_BYTES = 16
"""Shortest secret key that is taken: 128 bits."""

MIN_KEY_PAIRS = 12
"""Fewest different pairs of neighbouring bytes in a key.

Of random keys, 1 in 3,000 of 16 hexadecimal digits has fewer, and none of 32. One repeated byte, a
repeated word of up to 11 bytes and a count such as 0123456789012345 always have fewer.
"""

FINGERPRINT = re.compile("[0-9a-f]{4}(-[0-9a-f]{4}){3}")
"""How a fingerprint of a key is written."""

MAKE_KEY = "python -c 'import secrets; print(secrets.token_hex(32))'"

__all__ = ["KeyedDraws", "as_draws", "fresh", "generator", "jittered", "nodes", "one_row_each"]


def generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a NumPy generator from a seed, a generator, a RandomState or None (unpredictable)."""
    # scikit-learn hands on legacy states: four of their numbers seed a new generator
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise bad_input(
            "random_state", "be None, a non-negative integer or a generator", repr(random_state)
        ) from error


def nodes(m: int) -> Floats:
    """Midpoints of `m` equal cells of [0, 1], shape (1, m): every person gets the same draws.

    Examples
    --------
    >>> nodes(4)
    array([[0.125, 0.375, 0.625, 0.875]])
    """
    cells: Floats = np.arange(check_count("m", m), dtype=np.float64)[None, :]
    return (cells + 0.5) / m


def jittered(n_samples: int, m: int, random_state: RandomState = None) -> Floats:
    """One uniform draw in each of `m` equal cells for each person, shape (n, m).

    Column `j` of row `i` is uniform on `(j/m, (j+1)/m)`. Unlike midpoints, the exact W1 of such a
    row never understates the pathwise error in expectation, for any forecaster.

    Examples
    --------
    >>> r = jittered(2, 4, random_state=0)
    >>> (r * 4).astype(int)
    array([[0, 1, 2, 3],
           [0, 1, 2, 3]])
    """
    uniform = fresh((n_samples, check_count("m", m)), random_state)
    cells: Floats = np.arange(m, dtype=np.float64)
    # the division may round to the end of [0, 1], where quantiles are infinite
    return np.clip((cells + uniform) / m, 2.0**-60, 1 - 2.0**-53)


def fresh(shape: int | tuple[int, ...], random_state: RandomState = None) -> Floats:
    """Independent uniform draws, strictly between 0 and 1."""
    # midpoints of 2^52 cells: exact in float64, and never 0 or 1
    return np.asarray(
        (generator(random_state).integers(0, 2**52, size=shape) + 0.5) / 2.0**52, dtype=np.float64
    )


def as_draws(r: ArrayLike | None, n_samples: int, random_state: RandomState = None) -> Floats:
    """Return draws for `n_samples` people: fresh ones for None, anything else as it is.

    Parameters
    ----------
    r : None, float, array of shape (n,), (1, m) or (n, m)
        Draws strictly between 0 and 1; a number serves everybody.
    n_samples : int
        Number of people.
    random_state : int, generator or None
        Source of fresh draws.

    Returns
    -------
    ndarray of shape (n,), (1, m) or (n, m)
    """
    if r is None:
        return fresh(n_samples, random_state)
    draws = check_draws(r)
    # a number is one draw for everybody, as an array of its own size
    if draws.ndim == 0:
        return np.full(n_samples, float(draws))
    if draws.shape == (n_samples,) or (
        draws.ndim == 2 and draws.shape[0] in (1, n_samples) and draws.shape[1] > 0
    ):
        return draws
    rule = f"be a number or have shape ({n_samples},), (1, m) or ({n_samples}, m)"
    raise bad_input("r", rule, f"shape {draws.shape}", "one row per person, one column per draw")


def one_row_each(
    cluster: ArrayLike, n_samples: int, random_state: RandomState = None
) -> NDArray[np.intp]:
    """Choose one row of each person at random.

    Row numbers in increasing order, one per distinct label.

    Rows of one person are not independent: what treats rows as a sample of people takes one of
    each.

    Examples
    --------
    >>> one_row_each(["a", "b", "b", "c"], 4, random_state=0).size
    3
    """
    person = check_cluster(cluster, n_samples)
    # the first row of each person in a random order is a random row of the person
    shuffled = generator(random_state).permutation(n_samples)
    _, first = np.unique(person[shuffled], return_index=True)
    return np.sort(shuffled[first]).astype(np.intp)


class KeyedDraws:
    """A person's draw as a keyed hash of the person's id.

    Replayable, unpredictable without the key.

    The draw does not depend on row order or batch, and two rows with one id share it; another key
    or context gives an unrelated draw. Who may ask again gets the same draw again.

    Parameters
    ----------
    key : bytes
        Secret of at least 16 bytes, fixed before ids are known. A key with fewer than 12 different
        pairs of neighbouring bytes, such as a repeated byte, is refused.
    context : str, default ""
        The decision that the draws are for, such as a period. One draw for life would make luck
        permanent: change the context with each new decision.

    Attributes
    ----------
    fingerprint : str
        Tells which key made a draw: 16 hexadecimal digits, with dashes between, that depend on the
        key alone.

    Raises
    ------
    InputError
        If the key or the context cannot be used; on a call, if an id is a float, empty, or holds a
        hidden character.

    Notes
    -----
    BLAKE2b over the length-prefixed context and the id, of which 52 bits plus a half give `r`; so 0
    and 1 cannot occur. Ids are integers or text: `1` and `"1"` are one id, text is compared in its
    NFC form. Control and format characters, characters without a glyph and blanks other than the
    inner ordinary space are refused, since ids that look alike would give one person two draws.

    The fingerprint is BLAKE2b of nothing with the same key and another personalization. Whoever
    guesses keys can test a guess with it as with one known draw, and learns no more.

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
        secret = _secret(check_key(key))
        if not isinstance(context, str):
            raise bad_input("context", "be text", repr(context))
        self.context = context
        # without dashes a csv reader may take it for a number: 1 in 1,000 is one, such as
        # 12345678e1234567
        self.fingerprint = (
            hashlib.blake2b(key=secret, digest_size=8, person=b"evenhand key").digest().hex("-", 2)
        )
        prefix = unicodedata.normalize("NFC", context).encode()
        self._hash = hashlib.blake2b(key=secret, digest_size=8, person=b"evenhand draw")
        # the length keeps context and id apart: no other pair of texts gives the same bytes
        self._hash.update(len(prefix).to_bytes(8, "big") + prefix)

    def __call__(self, ids: Iterable[Any]) -> Floats:
        """Return the draw of each id, shape (n,)."""
        return np.array(
            [self._draw(_canonical(value, i)) for i, value in enumerate(_listed(ids))],
            dtype=np.float64,
        )

    def _draw(self, text: bytes) -> float:
        keyed = self._hash.copy()
        keyed.update(text)
        # the 52 leading bits, in the middle of their cell as in `fresh`
        return ((int.from_bytes(keyed.digest(), "big") >> 12) + 0.5) / 2.0**52

    def __repr__(self) -> str:
        return f"KeyedDraws(key=<secret>, context={self.context!r})"


def _listed(ids: Iterable[Any]) -> list[Any]:
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise bad_input("ids", "be a sequence of ids", f"one value {ids!r}", "wrap it in a list")
    return list(ids)


def _canonical(value: Any, position: int) -> bytes:
    place = f"ids[{position}]"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral | str):
        remedy = "write ids as integers or text: a float id changes with its formatting"
        raise bad_input(place, "be an integer or text", f"{type(value).__name__} {value!r}", remedy)
    return check_id(value if isinstance(value, str) else int(value), place).encode()


def check_key(key: bytes) -> bytes:
    """Return a key if it can be a secret; no message shows any of it."""
    if not isinstance(key, bytes | bytearray):
        raise bad_input(
            "key", "be bytes", type(key).__name__, "text.encode() turns text into bytes"
        )
    whole = bytes(key)
    if len(whole) < MIN_KEY_BYTES:
        raise bad_input(
            "key", f"have at least {MIN_KEY_BYTES} bytes", len(whole), f"make one with: {MAKE_KEY}"
        )
    n_pairs = len(set(pairwise(whole)))
    if n_pairs < MIN_KEY_PAIRS:
        rule = f"have at least {MIN_KEY_PAIRS} different pairs of neighbouring bytes"
        raise bad_input("key", rule, n_pairs, f"it is easy to guess; make one with: {MAKE_KEY}")
    return whole


def _secret(key: bytes) -> bytes:
    # a BLAKE2b key holds 64 bytes at most; a longer one is hashed first, as HMAC does
    return key if len(key) <= 64 else hashlib.blake2b(key).digest()
