"""Numbers and tables as text: bounds are never rounded in their own favour."""

import math
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand import certify_pit
from evenhand._format import (
    FUZZ,
    at_least,
    at_most,
    band,
    confidence_in_full,
    number,
    p_value,
    percent,
    plain_number,
    points,
    ratio,
)
from evenhand._table import Column, Table, Value, wrapped

shares = st.floats(0, 1, allow_subnormal=False)
decimals = st.integers(0, 4)


def read(text):
    return Decimal(text.removesuffix("%").replace(",", ""))


def slack(exact):
    """Rounding errors of floats: eight units in the last place, as 0.1 + 0.2 is 30%.

    They are added to the shortest decimal of a float, which is up to half a unit apart from it.
    """
    return abs(exact) * Decimal(FUZZ + 2.0**-53)


@given(shares, decimals)
@example(0.30000000000000004, 1)
@example(0.3000001, 1)
@example(0.9999999, 1)
def test_a_printed_bound_contains_its_value(share, digits):
    exact = Decimal(share) * 100
    show = partial(percent, decimals=digits)
    high, low = read(at_most(share, show)), read(at_least(share, show))
    assert low - slack(exact) <= exact <= high + slack(exact)


@given(shares, decimals)
def test_a_printed_bound_is_the_nearest_on_its_side(share, digits):
    exact, step = Decimal(share) * 100, Decimal(1).scaleb(-digits)
    show = partial(percent, decimals=digits)
    assert read(at_most(share, show)) - exact <= step
    assert exact - read(at_least(share, show)) <= step
    assert len(at_most(share, show).removesuffix("%").partition(".")[2]) == digits
    assert abs(read(show(share)) - exact) <= step / 2 + slack(exact)


def test_no_number_has_a_minus_before_a_zero():
    shown = [percent(-1e-5), points(-1e-5), number(-0.0), at_most(-1e-9)]
    assert shown == ["0.0%", "0.0", "0.000", "0.0"]


@given(st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=False))
@example(0.99999)
@example(0.7397076739326987)
@example(1 - 1e-9)
@example(1 - 1e-13)
@example(1 - 2**-53)
def test_a_confidence_is_never_rounded_up(level):
    exact = Decimal(level) * 100
    printed = read(confidence_in_full(level))
    assert printed <= exact + slack(exact)
    assert printed < 100


@given(st.floats(0, 1))
def test_a_p_value_is_rounded_up_and_never_0(p):
    _, sign, text = p_value(p).split()
    assert read(text) > 0
    assert read(text) >= Decimal(p) - slack(Decimal(p))
    assert (sign == "<") == (p < 1e-4)


finite = st.floats(-1e15, 1e15, allow_subnormal=False)


@given(finite, finite)
@example(999.9996, 9.9996)
@example(-0.00001, 0.00001)
def test_a_printed_band_holds_the_band(a, b):
    low, high = sorted((a, b))
    for show in (number, plain_number, ratio):
        printed = [read(end) for end in band(show, low, high).split(" to ")]
        assert printed[0] <= Decimal(low) + slack(Decimal(low))
        assert printed[1] >= Decimal(high) - slack(Decimal(high))


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_what_is_not_known_is_a_dash(unknown):
    for show in (percent, points, number, at_most, at_least, ratio):
        assert show(unknown) == "-"
    assert band(points, unknown, 0.5) == "-"


def test_a_certificate_in_one_line_never_rounds_its_confidence_up():
    certificate = certify_pit(np.random.default_rng(0).uniform(size=200), confidence=0.99999)
    assert "confidence=0.9999" in repr(certificate).removesuffix(")").split(", ")


def test_text_from_data_is_neither_markup_nor_control():
    name = "[red]a[/red] \x1b[2J\u202e\n"
    shown = Table("Groups", [Column(name)], [[name], [Value(name, name)]]).text()
    assert shown.count(r"[red]a[/red] \u001b[2J\u202e\n") == 4
    assert "\x1b" not in shown + wrapped(name)
    assert wrapped("[b] one\nline") == r"[b] one\nline"


def test_words_are_whole_at_any_width_and_narrow_tables_are_printed_row_by_row():
    titles = ("group", "error (points)", "adjusted", "finding", "80% coverage", "rows")
    columns = [Column(title, is_number=i in (1, 5)) for i, title in enumerate(titles)]
    cells = ("everyone else", "2.5 (0.0 to 5.2)", "<0.0001", "intervals too narrow", "71.0%", "600")
    table = Table("Groups", columns, [cells, cells])
    words = {word for text in (*titles, *cells) for word in text.split()}
    for width in range(40, 131):
        shown = table.text(width)
        assert max(map(len, shown.splitlines())) <= width
        found = set(shown.replace("─", " ").split())
        assert words <= found | {word.removesuffix(":") for word in found}, width
    assert "─" in table.text(60)
    expected = ["group: everyone else", "  error (points): 2.5 (0.0 to 5.2)", "  adjusted: <0.0001"]
    assert table.text(40).splitlines()[:3] == expected
