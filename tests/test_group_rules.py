"""Rules of groups: text is parsed against known columns, and selects the rows that it prints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand import InputError
from evenhand.columns import Condition, Group, GroupRule, group_columns

TABLE = pd.DataFrame(
    {
        "bmi": [0.01, 0.03, 0.05, np.nan],
        "sex": [1, 2, 2, 1],
        "years and months": [1.0, 2.0, 3.0, 4.0],
        "job": ["cook", "R and D", None, 'a "b" and c = d'],
        "smokes": [True, False, True, False],
        "day": pd.to_datetime(
            ["2020-01-01", "2020-01-02", "2020-01-02 12:00", None], format="ISO8601"
        ),
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("bmi > 0.03", [2]),
        ("bmi>=0.03", [1, 2]),
        ("bmi <= 0.03", [0, 1]),
        ("bmi <= 0.03 (or missing)", [0, 1, 3]),
        ("bmi missing", [3]),
        ("bmi is not missing and sex = 2", [1, 2]),
        ("bmi > 0.03 and sex = 2", [2]),
        ("sex = 2.0", [1, 2]),
        ("sex is 1", [0, 3]),
        ("years and months > 2 and sex = 2", [2]),
        ("years and months <= 3 and years and months > 1", [1, 2]),
        ("job = R and D", [1]),
        ("job = R and D and sex = 2", [1]),
        ('job = "R and D"', [1]),
        ('job = "a \\"b\\" and c = d"', [3]),
        ('job != "cook or a = b"', [0, 1, 2, 3]),
        ("bmi > 0.03 and " * 99 + "sex = 2", [2]),
        ("day < 2021", [0, 1, 2]),
        ("job != cook", [1, 2, 3]),
        ("smokes = true", [0, 2]),
        ("smokes = False and sex = 1", [3]),
        ("day <= 2020-01-02", [0, 1]),
        ("day > 2020-01-02", [2]),
        ("day = 2020-01-02", [1]),
    ],
)
def test_text_selects_the_rows_that_it_describes(text: str, rows: list[int]) -> None:
    rule = GroupRule.parse(text, TABLE.columns)
    assert np.flatnonzero(rule.mask(TABLE)).tolist() == rows
    again = GroupRule.parse(rule.name, TABLE.columns)
    np.testing.assert_array_equal(again.mask(TABLE), rule.mask(TABLE))
    stored = GroupRule.from_state(json.loads(json.dumps(rule.to_state())))
    assert stored == rule
    assert stored.name == rule.name
    polars = pl.from_pandas(TABLE)
    np.testing.assert_array_equal(rule.mask(polars), rule.mask(TABLE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bmy > 0.03", "the table has no column 'bmy'"),
        ("job = cook and sexx = 2", "has no column 'sexx'.*did you mean 'sex'"),
        ("bmi 0.03", "must be comparisons such as"),
        ("bmi > 0.03 and", "must be comparisons"),
        ("", "must be comparisons"),
        ("bmi > 0.03 or sex = 2", "must compare column 'bmi' with a number"),
        ("job = cook or sex = 2", 'must be comparisons.*join them by "and"'),
        ("sex = 2 AND bmi > 0.03", "must be comparisons"),
        ("sex = 2 and " * 100 + "sex = 2", "must have at most 100 conditions, got 101"),
        ("bmi > nan", "must compare column 'bmi' with a number, got 'nan'"),
        ("day < NaT", "must compare column 'day' with a date such as 2020-01-31, got 'NaT'"),
        ("job > cook", "column 'job' must contain numbers or dates to be compared by >"),
        ("day > soon", "must compare column 'day' with a date such as 2020-01-31, got 'soon'"),
    ],
)
def test_wrong_text_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        GroupRule.parse(text, TABLE.columns).mask(TABLE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", ["float64", "float32", "Int64"])
def test_rules_of_an_audit_s_groups_select_the_rows_of_the_groups(dtype: str) -> None:
    random = np.random.default_rng(0)
    numbers = random.normal(size=501) * 1e3
    values = pd.Series(numbers.astype(int) if dtype in ("int64", "Int64") else numbers)
    table = pd.DataFrame({"x": values.astype(dtype), "few": random.integers(0, 4, 501)})
    for group, mask in group_columns(table, ["x", "few"], source="X").pairs():
        rule = GroupRule.of(group)
        assert rule.name == group.name
        np.testing.assert_array_equal(rule.mask(table), mask)
        parsed = GroupRule.parse(group.name, table.columns)
        np.testing.assert_array_equal(parsed.mask(table), mask)


def test_whole_numbers_above_two_to_the_53rd_are_exact() -> None:
    table = pd.DataFrame({"id": np.array([2**53, 2**53 + 1, 2**53 + 2])})
    for text, rows in (("<=", [0, 1]), (">", [2]), ("=", [1]), ("<", [0]), (">=", [1, 2])):
        rule = GroupRule.parse(f"id {text} {2**53 + 1}", table.columns)
        assert np.flatnonzero(rule.mask(table)).tolist() == rows


def test_a_value_of_32_bits_that_prints_as_the_number_is_equal_to_it() -> None:
    table = pd.DataFrame({"x": np.array([0.1, 0.2, 0.3], dtype=np.float32)})
    for text, rows in (("<= 0.2", [0, 1]), ("< 0.2", [0]), ("= 0.2", [1]), (">= 0.2", [1, 2])):
        rule = GroupRule.parse(f"x {text}", table.columns)
        assert np.flatnonzero(rule.mask(table)).tolist() == rows


def test_comparisons_agree_with_numpy_on_random_numbers() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=300).round(2)
    table = pd.DataFrame({"x": values})
    compared: dict[str, Any] = {
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "=": np.equal,
        "!=": np.not_equal,
    }
    for operator, function in compared.items():
        for cut in values[:20]:
            rule = GroupRule.of(Group("x", operator, repr(float(cut))))  # type: ignore[arg-type]
            np.testing.assert_array_equal(rule.mask(table), function(values, cut))


def test_missing_values_meet_only_what_says_so() -> None:
    between = Condition((Group("bmi", ">", "0.02"), Group("bmi", "<=", "0.03")), or_missing=True)
    rule = GroupRule((between,))
    assert np.flatnonzero(rule.mask(TABLE)).tolist() == [1, 3]
    assert rule.name == "bmi > 0.02 (or missing) and bmi <= 0.03 (or missing)"
