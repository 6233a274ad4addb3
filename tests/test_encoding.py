import datetime as dt
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from complaints import refused
from evenhand import InputError
from evenhand.tables import TableEncoder
from evenhand.tables.encoding import EncodedColumn


def encoded(train, new=None):
    encoder = TableEncoder().fit(train)
    matrix = encoder.transform(train if new is None else new)
    assert matrix.dtype == np.float64
    assert np.isfinite(matrix).all()
    assert matrix.shape[1] == len(encoder.names_out)
    return dict(zip(encoder.names_out, matrix.T.tolist(), strict=True))


def column(values, **options):
    return pd.DataFrame({"v": pd.Series(values, **options)})


MIXED = pd.DataFrame(
    {
        "age": [20.0, 40.0, None, 30.0],
        "children": [0, 2, 1, 1],
        "job": ["nurse", "cook", None, "nurse"],
        "owner": [True, False, None, True],
        "since": [dt.date(2020, 1, 1), None, dt.date(2021, 7, 2), dt.date(2019, 3, 5)],
        "region": pd.Categorical([3, 1, 3, 3]),
        "empty": [None] * 4,
        "nothing": [math.nan] * 4,
        "same": [7.0] * 4,
    }
)


def test_numbers_are_standardised_like_scikit_learn():
    table = pd.DataFrame(np.random.default_rng(0).normal(50, 9, (40, 3)), columns=["a", "b", "c"])
    new = table.iloc[:7] * 1.5
    scaler = StandardScaler().fit(table)
    found = TableEncoder().fit(table).transform(new)
    np.testing.assert_allclose(found, scaler.transform(new), rtol=1e-12)
    ours = TableEncoder().fit_transform(table.to_numpy())
    np.testing.assert_allclose(ours, scaler.transform(table), rtol=1e-12)


@pytest.mark.parametrize("has_gaps", [False, True])
def test_numbers_that_need_no_reading_are_encoded_as_those_that_do(has_gaps):
    rng = np.random.default_rng(0)
    train = np.column_stack([rng.normal(50, 9, (40, 3)), np.full(40, 7.0)])
    if has_gaps:
        train[::7, 0] = train[::5, 2] = np.nan
    new = rng.normal(50, 20, (6, 4))
    new[1, :2] = np.nan
    new[2, 0] = 1e150
    names = [f"x{i}" for i in range(4)]
    table = pd.DataFrame(new, columns=names)
    for encoder in (
        TableEncoder().fit(train),
        TableEncoder().fit(pd.DataFrame(train, columns=names)),
    ):
        # a table of objects is read column by column
        expected = encoder.transform(table.astype(object))
        assert expected.shape[1] == len(encoder.names_out)
        for rows in (new, np.asfortranarray(new), new.tolist(), table, table.assign(other="z")):
            np.testing.assert_array_equal(encoder.transform(rows), expected)
        np.testing.assert_array_equal(encoder.transform(table[:1]), expected[:1])
        for bad, rule in ((np.inf, "inf"), (-1e200, "-1e\\+200")):
            with pytest.raises(InputError, match=f"^column 'x0', row 3 must lie .* got {rule}"):
                encoder.transform(np.where(new == 1e150, bad, new))


def test_missing_numbers_are_the_mean_and_marked_if_training_had_some():
    expected = {"v": [-1.0, 0.0, 1.0], "v missing": [0.0, 1.0, 0.0]}
    assert encoded(column([1.0, None, 3.0])) == expected
    assert encoded(column([1, 3]), column([None, 3.0])) == {"v": [0.0, 1.0]}
    wanted = {"v": [-1.0, 0.0, 1.0], "v missing": [0.0, 1.0, 0.0]}
    assert encoded(column([1, None, 3], dtype="Int64")) == wanted


def test_levels_are_one_hot_like_scikit_learn():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({name: rng.choice(["u", "v", "w"], 30) for name in "ab"})
    expected = OneHotEncoder(sparse_output=False).fit_transform(table)
    outputs = encoded(table)
    known = [values for name, values in outputs.items() if "unknown" not in name]
    np.testing.assert_array_equal(np.transpose(known), expected)
    assert not any(outputs["a unknown"])


def test_unseen_levels_are_unknown_and_missing_is_a_level_if_training_had_it():
    assert encoded(column(["a", "b", None]), column(["b", "c", None])) == {
        "v = a": [0, 0, 0],
        "v = b": [1, 0, 0],
        "v unknown": [0, 1, 0],
        "v missing": [0, 0, 1],
    }
    assert encoded(column(["a"]), column([None], dtype=object)) == {"v = a": [0], "v unknown": [1]}


def test_the_fifty_most_frequent_levels_are_kept_and_ties_go_by_text():
    values = [f"n{i:02d}" for i in range(60)] + ["n59", "n58"]
    outputs = encoded(column(values))
    kept = [f"v = n{i:02d}" for i in (*range(48), 58, 59)]
    assert list(outputs) == [*kept, "v unknown"]
    assert sum(outputs["v unknown"]) == 10


def test_dates_are_a_trend_and_a_season():
    outputs = encoded(column([dt.date(1970, 1, 1), dt.date(1970, 1, 3), None]))
    assert outputs["v"] == [-1.0, 1.0, 0.0]
    assert outputs["v missing"] == [0.0, 0.0, 1.0]
    found = outputs["v sine"]
    np.testing.assert_allclose(found, [0.0, math.sin(2 * math.pi * 2 / 365), 0.0], atol=1e-12)
    ours = outputs["v cosine"]
    np.testing.assert_allclose(ours, [1.0, math.cos(2 * math.pi * 2 / 365), 0.0], atol=1e-12)
    # Noon of day 183 is half of a leap year of 366 days less half a day.
    leap = encoded(column([pd.Timestamp("2020-07-01 12:00")]))
    np.testing.assert_allclose(leap["v cosine"], [math.cos(2 * math.pi * 182.5 / 366)])


def test_bad_input_is_named_in_one_line():
    whole = column([1, 2])
    refused("column 'v', row 2 .*number.* 'two'", encoded, whole, column(["1", "two"]))
    refused("column 'v', row 3 .*number.* 'a'", encoded, column([1.5, None, "a"], dtype=object))
    refused("column 'v', row 2 .*true or false.* 2", encoded, column([True]), whole)
    days = column([dt.date(2020, 1, 1)])
    refused("column 'v', row 1 .*date.* 18262", encoded, days, column([18262]))
    refused("column 'v' .*single values", encoded, column([[1], [2]]))
    refused("^X .*'age', 'job'; add", encoded, MIXED, MIXED.drop(columns=["job", "age"]))


numbers = st.none() | st.floats(-1e150, 1e150)
KINDS_OF_CELLS = {
    "number": numbers,
    "whole": st.integers(-(2**53), 2**53),
    "text": st.none() | st.text(max_size=3),
    "few": st.sampled_from(["a", "b", "c", None]),
    "boolean": st.none() | st.booleans(),
    "date": st.none() | st.dates(),
    "time": st.none() | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
}


@st.composite
def tables(draw):
    n_rows = draw(st.integers(1, 12))
    names = draw(st.lists(st.sampled_from(sorted(KINDS_OF_CELLS)), min_size=1, unique=True))
    cells = {
        name: draw(st.lists(KINDS_OF_CELLS[name], min_size=n_rows, max_size=n_rows))
        for name in names
    }
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.items()})


@given(tables(), tables())
def test_a_state_that_went_through_json_gives_the_same_encoder(table, other):
    encoder = TableEncoder().fit(table)
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.to_state())))
    assert again.columns_ == encoder.columns_
    assert again.to_state() == encoder.to_state()
    assert again.names_out == encoder.names_out
    new = other.reindex(columns=table.columns)  # columns that `other` lacks are missing throughout
    matrix = encoder.transform(new)
    assert np.isfinite(matrix).all()
    np.testing.assert_array_equal(again.transform(new), matrix)


@given(tables(), st.randoms(use_true_random=False))
def test_rows_and_columns_may_come_in_any_order(table, random):
    rows, columns = list(range(len(table))), list(table.columns)
    random.shuffle(rows)
    random.shuffle(columns)
    encoder = TableEncoder().fit(table)
    expected = encoder.transform(table)[rows]
    np.testing.assert_array_equal(encoder.transform(table.iloc[rows][columns]), expected)


def test_of_two_levels_the_one_in_the_group_is_named():
    both = pd.Series(["man", "woman", "woman"], name="sex")
    column = EncodedColumn.fit("sex", both)
    for output in (0, 1):
        for low, high in ((-np.inf, 0.5), (0.5, np.inf)):
            condition = column.condition(output, low, high)
            inside = column.transform(both)[:, output]
            expected = (inside > low) & (inside <= high)
            (group,) = condition.comparisons
            assert group.operator == "="
            assert ((both == group.value).to_numpy() == expected).all()
    # a missing value meets "sex != man" and not "sex = woman"
    missing = EncodedColumn.fit("sex", pd.Series(["man", "woman", None], name="sex"))
    condition = missing.condition(0, -np.inf, 0.5)
    assert [group.operator for group in condition.comparisons] == ["!="]
