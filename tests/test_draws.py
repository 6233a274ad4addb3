"""Draws: independent of row order, replayable, uniform; ambiguous ids are refused."""

import hashlib
import math
import unicodedata
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from complaints import refused
from evenhand.draws import KeyedDraws, as_draws, fresh, generator, jittered, nodes, one_row_each

KEY = bytes(range(32))
N = 20_000

# letters and marks without a glyph, from DerivedCoreProperties.txt of Unicode, and the blank of
# braille
NO_GLYPH = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
NO_GLYPH += "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
seen = st.characters(
    exclude_categories=["Z", "C"], exclude_characters=NO_GLYPH, include_characters=" "
)
ids_of_people = st.one_of(st.integers(), st.text(seen, min_size=1).map(str.strip).filter(bool))
keys = st.binary(min_size=16, max_size=64).filter(lambda key: len(set(pairwise(key))) >= 12)


def by_hashlib(key, context, person):
    """The draw as the method defines it: keyed BLAKE2b with lengths, 52 bits plus a half."""
    context_bytes = unicodedata.normalize("NFC", context).encode("utf-8")
    message = (
        len(context_bytes).to_bytes(8, "big")
        + context_bytes
        + unicodedata.normalize("NFC", person).encode()
    )
    digest = hashlib.blake2b(message, key=key, digest_size=8, person=b"evenhand draw").digest()
    top = int.from_bytes(digest, "big") // 2**12
    return math.ldexp(top + 0.5, -52)


@settings(max_examples=100)
@given(keys, st.text(st.characters(exclude_categories=["Cs"])), ids_of_people)
def test_draw_is_the_keyed_hash_of_context_and_id(key, context, person):
    draw = KeyedDraws(key, context)([person])
    assert draw.dtype == np.float64
    assert draw.tolist() == [by_hashlib(key, context, str(person))]


@given(st.lists(ids_of_people, max_size=8), st.randoms(use_true_random=False))
def test_a_draw_depends_on_its_id_and_not_on_order_or_batch(ids, random):
    draws = KeyedDraws(KEY, "spring")
    whole = draws(ids)
    assert whole.shape == (len(ids),)
    order = list(range(len(ids)))
    random.shuffle(order)
    np.testing.assert_array_equal(draws([ids[i] for i in order]), whole[order])
    for person, draw in zip(ids, whole, strict=True):
        assert draws([person])[0] == KeyedDraws(KEY, "spring")([person])[0] == draw
        assert 0 < draw < 1


def test_numbers_and_their_digits_are_one_id_in_any_container():
    draws = KeyedDraws(KEY)
    one = draws(["1"])[0]
    for ids in (
        *([1], (1,), {1}, iter([1]), np.array([1]), np.array([1], dtype=np.uint8)),
        *(np.array(["1"]), pd.Series([1], index=[7]), pd.Series(["1"], dtype="string")),
    ):
        np.testing.assert_array_equal(draws(ids), [one])
    assert draws([10**30])[0] == draws([str(10**30)])[0]
    assert draws(["01"])[0] != one
    assert draws([-1])[0] == draws(["-1"])[0] != one
    assert draws([]).shape == (0,)


def test_text_is_compared_in_its_composed_form():
    composed, apart = "Zo\u00eb", "Zoe\u0308"
    assert composed != apart
    assert KeyedDraws(KEY)([composed])[0] == KeyedDraws(KEY)([apart])[0]
    assert KeyedDraws(KEY, composed)(["a"])[0] == KeyedDraws(KEY, apart)(["a"])[0]
    assert KeyedDraws(KEY)(["a"])[0] != KeyedDraws(KEY)(["A"])[0]


def test_what_is_no_id_is_refused_with_its_position():
    for value, shown in (
        (1.0, "float 1.0"),
        (True, "bool True"),
        (None, "NoneType None"),
        (b"17", "bytes b'17'"),
        (pd.Timestamp("2026-11-01"), "Timestamp"),
    ):
        number = rf"^ids\[2\] must be an integer or text, got .*{shown}"
        refused(number, KeyedDraws(KEY), ["a", 5, value])
    refused(r"^ids\[1\] must not be empty", KeyedDraws(KEY), ["a", ""])
    refused(r"^ids\[1\] must not be empty", KeyedDraws(KEY), ["a", "\u00a0"])
    told = refused(r"^ids\[1\] must be valid Unicode text", KeyedDraws(KEY), ["a", "broken \udcff"])
    told.encode()
    for alone in ("alice", 17):
        refused("^ids must be a sequence of ids.*wrap it in a list", KeyedDraws(KEY), alone)


def test_keys_that_are_short_or_no_bytes_are_refused():
    assert KeyedDraws(bytes(range(16)))(["a"]).shape == (1,)
    short = "^key must have at least 16 bytes, got 15; make one with: python"
    assert "xxx" not in refused(short, KeyedDraws, b"x" * 15)
    text = refused("^key must be bytes, got str", KeyedDraws, "secret secret secret")
    assert "secret secret" not in text
    refused("^context must be text, got 2026", KeyedDraws, KEY, 2026)
    refused(r"^context must be valid Unicode text, got '.ud800'", KeyedDraws, KEY, "\ud800")
    # keys longer than the hash takes are hashed first
    long = bytes(range(200))
    assert KeyedDraws(long)(["a"])[0] == by_hashlib(hashlib.blake2b(long).digest(), "", "a")


def test_the_key_is_not_shown():
    shown = repr(KeyedDraws(b"a key of the sixteen", "spring"))
    assert shown == "KeyedDraws(key=<secret>, context='spring')"


def test_the_least_and_the_greatest_hash_stay_inside_the_open_interval(monkeypatch):
    draws = KeyedDraws(KEY)
    for byte, expected in ((b"\x00", 2.0**-53), (b"\xff", 1 - 2.0**-53)):
        ended = Mock(**{"copy.return_value.digest.return_value": 8 * byte})
        monkeypatch.setattr(draws, "_draws", ended)
        assert draws(["a"])[0] == expected
        assert 0 < expected < 1


def test_jittered_draws_lie_one_in_each_cell_and_uniformly_within():
    # Kolmogorov-Smirnov at 1e-6 for 8 cells; a correlation beyond 5 / sqrt(n) has 6e-7
    n, m = 5000, 8
    r = jittered(n, m, random_state=1)
    assert r.shape == (n, m)
    assert r.dtype == np.float64
    within = r * m - np.arange(m)
    assert (within >= 0).all()
    assert (within <= 1).all()
    for j in range(m):
        assert stats.kstest(within[:, j], "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(within[:, 0], within[:, 1])[0, 1]) < 5 / np.sqrt(n)
    np.testing.assert_array_equal(jittered(n, m, random_state=1), r)
    assert (jittered(n, m, random_state=2) != r).any()


@pytest.mark.parametrize("random_state", [0, 7, np.int64(3)])
def test_fresh_draws_are_uniform_open_and_repeatable(random_state):
    # Kolmogorov-Smirnov at 1e-6
    draws = fresh(N, random_state)
    assert draws.shape == (N,)
    assert draws.dtype == np.float64
    assert draws.min() > 0
    assert draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 1e-6
    np.testing.assert_array_equal(fresh(N, random_state), draws)
    assert fresh((2, 3), random_state).shape == (2, 3)


def test_fresh_draws_stay_open_at_the_ends_of_the_generator():
    class Ends(np.random.Generator):
        def integers(self, low, high, size=None):
            return np.array([low, high - 1])

    low, high = fresh(2, Ends(np.random.PCG64()))
    assert low == 2.0**-53
    assert high == 1 - 2.0**-53 < 1
    cells = jittered(1, 2, Ends(np.random.PCG64()))
    assert 0 < cells.min() < cells.max() < 1


def test_each_row_of_a_person_is_as_likely_to_be_the_one():
    # rows 0 and 3 are alone, 1, 2, 4 and 5 one person's; chi-squared at 1e-6
    person = ["a", "b", "b", "c", "b", "b"]
    rows = np.array([one_row_each(person, 6, seed) for seed in range(400)])
    assert (np.diff(rows, axis=-1) > 0).all()
    assert ((rows == 0).any(axis=-1) & (rows == 3).any(axis=-1)).all()
    chosen = np.bincount(rows.ravel(), minlength=6)[[1, 2, 4, 5]]
    assert chosen.sum() == 400
    assert stats.chisquare(chosen).pvalue > 1e-6
    assert one_row_each(person, 6, 7).tolist() == one_row_each(person, 6, 7).tolist()


def test_draws_of_another_shape_or_outside_are_refused():
    shape = r"^r must be .* \(2,\), \(1, m\) or \(2, m\), got shape \(3, 2\)"
    refused(shape, as_draws, np.full((3, 2), 0.5), 2)
    none = r"^r must be a number or have shape .* got shape \(2, 0\)"
    refused(none, as_draws, np.full((2, 0), 0.5), 2)
    refused(r"^r\[1\] must lie strictly between 0 and 1, got", as_draws, [0.5, 0.0], 2)
    refused(r"^r\[0, 1\] must lie strictly between 0 and 1, got", as_draws, [[0.5, np.nan]], 2)
    refused("^r must lie strictly between 0 and 1, got", as_draws, True, 2)
    for make in (nodes, lambda count: jittered(3, count)):
        refused("^m must be an integer of at least 1, got", make, 0)


def test_generators_come_from_seeds_generators_and_legacy_states():
    assert generator(5).integers(1 << 40) == np.random.default_rng(5).integers(1 << 40)
    own = np.random.default_rng(0)
    assert generator(own) is own
    legacy = [generator(np.random.RandomState(3)).integers(1 << 40) for _ in range(2)]
    assert legacy[0] == legacy[1]
    assert generator(np.random.RandomState(4)).integers(1 << 40) != legacy[0]
    state = np.random.RandomState(3)
    assert generator(state).integers(1 << 40) != generator(state).integers(1 << 40)
    assert generator(None).integers(1 << 60) != generator(None).integers(1 << 60)


def test_ties_are_the_draws_of_a_context_of_their_own():
    draws = KeyedDraws(b"sixteen bytes or more", context="2026-11")
    ids = np.arange(500)
    own = KeyedDraws(b"sixteen bytes or more", context="2026-11/ties")
    np.testing.assert_array_equal(draws.ties(ids), own(ids))
    np.testing.assert_array_equal(draws.ties([17, "17"]), own([17, 17]))
    refused(r"ids\[0\] must be an integer or text", draws.ties, [1.5])


def test_draws_are_uniform_and_unrelated_between_keys_contexts_and_neighbours():
    # Kolmogorov-Smirnov at 1e-6, correlations beyond 5 / sqrt(N) at 6e-7: 8 in a million keys
    ids = range(N)
    first = KeyedDraws(KEY, "2026-11")(ids)
    assert np.unique(first).size == N
    assert first.min() > 0
    assert first.max() < 1
    others = [
        KeyedDraws(KEY, "2026-12")(ids),
        KeyedDraws(KEY, "")(ids),
        KeyedDraws(bytes([1]) + KEY[1:], "2026-11")(ids),
    ]
    for draws in (first, *others):
        assert stats.kstest(draws, "uniform").pvalue > 1e-6
    for other in (*others, np.roll(first, 1)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / np.sqrt(N)
