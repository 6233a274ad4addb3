"""Columns of tables: the meaning of a cell never depends on the rest of the file."""

import itertools
import json
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import BayesianRidge, LinearRegression

from command_outcome import KEY, written
from complaints import refused
from evenhand import BoostedDistributionRegressor, RandomizedRegressor, save
from evenhand._validate import InputError
from evenhand.scale import forecast_parts
from evenhand.tables import (
    Column,
    Schema,
    Tally,
    UnseenValues,
    UnseenValuesWarning,
    cells_of_text,
    read_typed,
)
from evenhand.tables.files import read_table
from evenhand.tables.schema import kind_of_cells
from evenhand.tables.values import FEW
from repeats import most_failures, repeats, statistical

HOSTILE = (
    "01234", "1234", "1.0", "1e5", " 5", "5 ", "true", "TRUE", "false", "2020-01-01", "20200101",
    "NA", "nan", "null", "N/A", "None", "inf", "12345678901234567890", "98765432109876543210",
    "-0", "+49170", "0x1F", "1_000", "12,5", 'say "so"',
    "é", "e\u0301", "'=1+1", "?", "-", "", "two\nlines",
)  # fmt: skip
"""Forms of cells that readers take for numbers, dates, booleans or missing values, each a level
of its own."""


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    return pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "code": np.array(HOSTILE, dtype=object)[np.arange(n) % len(HOSTILE)],
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) * 1e3),
            "count": rng.integers(0, 9, n),
            "member": rng.random(n) < 0.5,
            "since": day,
        }
    ).replace({"code": {"": None}})


TABLE = rows()


@pytest.fixture(scope="module")
def model():
    """Fit boosted trees, for which every level matters, and put a link around them."""
    noise = 0.5 * np.random.default_rng(1).normal(size=len(TABLE))
    base = BoostedDistributionRegressor(n_estimators=20, min_child_samples=2, random_state=0)
    y = pd.factorize(TABLE["code"])[0] + noise
    return RandomizedRegressor(base, alpha=0.2).fit(TABLE.drop(columns="id"), y)


def served(model, table, folder):
    """Forecast the people of a file as the command does; without row order."""
    out = folder / "out.parquet"
    with warnings.catch_warnings(action="error", category=UnseenValuesWarning):
        forecast_parts(model, table, out, id_column="id", key=KEY, context="test")
    return read_table(out).set_index("id").select_dtypes("number")


cell = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=4),
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False).map(repr),
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(cell, min_size=2, max_size=8))
def test_a_column_read_by_a_schema_is_the_same_in_every_file(tmp_path, cells):
    """Text of any form: each row alone, all rows, packed and not, parquet and Python."""
    table = pd.DataFrame(
        {"id": [f"p{i}" for i in range(len(cells))], "v": pd.array(cells, dtype="str")}
    )
    schema = Schema.learn(pd.DataFrame({"v": ["some", "text"]}))

    def held(path):
        values = read_typed(path, schema=schema, text=["id"])[0]["v"]
        return [None if pd.isna(value) else value for value in values]

    expected = [value or None for value in cells]
    assert held(written(table, tmp_path / "t.csv")) == expected
    assert held(written(table, tmp_path / "t.csv.gz")) == expected
    assert held(written(table, tmp_path / "t.parquet")) == expected
    found = [held(written(table.iloc[[i]], tmp_path / "t.csv"))[0] for i in range(len(cells))]
    assert found == expected
    in_memory = schema.apply(table.astype({"v": object}), "")["v"]
    assert [None if pd.isna(value) else value for value in in_memory] == expected


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3", "1e5", " 7", ".5", "0", "0.25", ""], "number"),
        (["1", "NA", "nan", "null"], "number"),
        (["1", "inf"], "number"),
        (["", ""], "number"),
        (["01234", "5"], "category"),
        (["+49170", "5"], "category"),
        (["1234567890123456", "5"], "category"),
        (["1", "x"], "category"),
        (["NA", ""], "category"),
        (["true", "FALSE", "NA", ""], "boolean"),
        (["true", "1"], "category"),
        (["2020-01-01", "2020-02-29T10:30:00Z", ""], "date"),
        (["2020-01-01", "2020-02-30"], "category"),
        (["2020", "2021"], "number"),
    ],
)
def test_without_a_model_all_cells_of_a_column_decide_its_kind(cells, kind):
    values = pd.Series(cells, dtype="str").replace("", np.nan)
    assert kind_of_cells([cells_of_text(values)]) == kind
    halves = [cells_of_text(values[:1]), cells_of_text(values[1:])]
    assert kind_of_cells(halves) == kind_of_cells(halves[::-1]) == kind


@pytest.mark.parametrize(("cell", "kind"), [("old", "number"), ("007", "category")])
def test_most_parts_decide_the_kind_of_a_column_unless_another_has_codes(cell, kind):
    columns = [["1", "2"], ["3", cell], ["5", "NA"]]
    assert kind_of_cells([cells_of_text(pd.Series(cells)) for cells in columns]) == kind


def test_a_column_that_is_nearly_all_numbers_is_remarked_on(tmp_path):
    table = pd.DataFrame({"age": [*map(str, range(30)), "?"]})
    found, remarks = read_typed(written(table, tmp_path / "t.csv"))
    assert found["age"].tolist()[-1] == "?"
    assert len(remarks) == 1
    assert "column 'age' is read as categories: 1 of its 31 values are not numbers" in remarks[0]
    assert "the first in row 31, '?'" in remarks[0]


def test_a_cell_that_does_not_fit_its_column_is_named_with_file_column_row_and_value(
    model, tmp_path
):
    cases = {"size": "12 kg", "member": "maybe", "since": "soon", "count": "inf"}
    rules = ("be a number", "be true or false", "be a date", "lie between")
    for (column, value), rule in zip(cases.items(), rules, strict=True):
        table = TABLE[:9].astype(str)
        table.loc[4, column] = value
        with pytest.raises(InputError) as caught:
            served(
                model,
                written(table.replace({"nan": None, "None": None}), tmp_path / "t.csv"),
                tmp_path,
            )
        assert f"t.csv: column {column!r}, row 5 must {rule}" in str(caught.value)
        assert value in str(caught.value)
        assert "\n" not in str(caught.value)


def test_new_values_of_a_category_type_stay_values_of_it():
    schema = Schema.learn(pd.DataFrame({"v": pd.Categorical(["a", "b"] * 40)}))
    cells = pd.Series(["a", "new", None], dtype=object)
    found = schema.apply(pd.DataFrame({"v": cells}), "")["v"]
    assert isinstance(found.dtype, pd.CategoricalDtype)
    assert found.tolist()[:2] == ["a", "new"]
    assert found.isna().tolist() == [False, False, True]


DAYS = pd.to_datetime(["2020-01-01", "2021-06-30"] * 40)
ROLES = pd.Categorical(["a", "b"] * 40)


@pytest.mark.parametrize(
    ("trained", "given"),
    [
        (DAYS.astype("datetime64[ns]"), DAYS.astype("datetime64[s]")),
        (DAYS.tz_localize("UTC").tz_convert("Asia/Tokyo"), DAYS.strftime("%Y-%m-%d")),
        (
            DAYS.strftime("%Y-%m-%dT%H:%M:%SZ").to_series().map(pd.Timestamp).dt.date.to_numpy(),
            DAYS,
        ),
        (DAYS, pd.array(DAYS.date, dtype=pd.ArrowDtype(pa.date32()))),
        (np.array([0.1, 7.0] * 40, dtype=np.float32), ["0.1", "7"] * 40),
        (np.array([0.1, 7.0] * 40), pd.array([0.1, 7] * 40, dtype=pd.ArrowDtype(pa.float64()))),
        (ROLES, pd.Categorical(["b", "a"] * 40, categories=["b", "a"])[::-1]),
        (ROLES, pd.Categorical(["a", "b"] * 40, categories=["z", "b", "a"])),
        (np.array([True, False] * 40), pd.Categorical(["true", "false"] * 40)),
    ],
)
def test_models_get_columns_in_the_type_of_training(trained, given):
    """Also alone: a model may use units, the digits of a number or codes of categories."""
    schema = Schema.learn(pd.DataFrame({"v": trained}))
    expected = schema.apply(pd.DataFrame({"v": trained}), "")
    table = pd.DataFrame({"v": given})
    pd.testing.assert_frame_equal(schema.apply(table, ""), expected)
    pd.testing.assert_frame_equal(schema.apply(table[:1], ""), expected[:1])


def test_a_value_beyond_the_type_of_training_is_refused():
    for trained, value in (
        (DAYS.astype("datetime64[ns]"), "9999-12-31"),
        (np.float32([1, 2]), "1e39"),
    ):
        schema = Schema.learn(pd.DataFrame({"v": trained}))
        message = r"^t\.csv: column 'v', row 2 .*the type in training, got"
        refused(message, schema.apply, pd.DataFrame({"v": [None, value]}), "t.csv")


def test_a_model_trained_on_pandas_gets_rows_of_pandas():
    """One-hot columns of missing values: scikit-learn separates None (polars) from NaN."""
    import polars as pl
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"job": pd.Series(["nurse", None, "cook"] * 30, dtype=object)})
    y = np.tile([0.0, 9.0, 1.0], 30) + np.random.default_rng(0).normal(size=90)
    steps = make_pipeline(
        OneHotEncoder(handle_unknown="ignore", sparse_output=False), BayesianRidge()
    )
    model = RandomizedRegressor(steps).fit(frame, y)
    found = model.predict(pl.from_pandas(frame))
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-12)


def unseen(column, values):
    schema = Schema.learn(pd.DataFrame({"v": column}))
    return UnseenValues.of(schema, schema.apply(pd.DataFrame({"v": values}), "")).lines()


def test_values_that_training_never_had_are_counted_with_an_example():
    assert unseen(["f", "m"] * 50, ["F"] * 9 + ["m"]) == [
        "column 'v': 9 of 10 values never occurred in training, such as 'F'; training had 'f', 'm'"
    ]
    age = np.arange(20.0, 91.0)
    assert unseen(age, age * 1000) == [
        "column 'v': 71 of 71 values lie outside the range of training, 20 to 90; all values"
        " reach from 20000 to 90000: check the units"
    ]
    days = pd.date_range("2010-01-01", periods=100, freq="ME")
    assert unseen(days, pd.Series(["2012-05-01", "9999-12-31"])) == [
        "column 'v': 1 of 2 values lie outside the range of training, 2010-01-31 to 2018-04-30; all"
        " values reach from 2012-05-01 to 9999-12-31: check the units"
    ]
    expected = ["column 'v': 5 of 5 values are missing; training had no missing ones"]
    assert unseen(age, [np.nan] * 5) == expected
    gaps = np.where(np.arange(71) % 4 == 0, np.nan, age)
    wanted = ["column 'v': all 8 values are missing; in training 25.4% were"]
    assert unseen(gaps, [np.nan] * 8) == wanted
    assert unseen([True, True], [False]) == [
        "column 'v': 1 of 1 values never occurred in training, such as 'False'; training had 'True'"
    ]


@statistical
def test_values_like_those_of_training_are_not_remarked_on():
    """At most 1e-3 a table (beta-binomial); false-alarm rate 1.5e-6."""
    rng, n_tables = np.random.default_rng(0), repeats(2000)
    alarms = sum(bool(unseen(rng.uniform(size=60), rng.uniform(size=40))) for _ in range(n_tables))
    assert alarms <= most_failures(n_tables, 1e-3, false_alarm=1.5e-6)
    assert unseen(np.arange(100.0), [104.0]) == []  # one value a little outside
    assert unseen(["a", None], [None]) == []


@statistical
@pytest.mark.parametrize(
    ("n", "m", "tail"), [(50, 500, "incomes"), (500, 50, "tail of index 2"), (500, 5000, "rounded")]
)
def test_long_tails_are_not_remarked_on(n, m, tail):
    """At most 2e-3 a table (too many, too far); false-alarm rate 1e-6."""
    draw = {
        "incomes": lambda rng, size: rng.lognormal(10, 1, size),
        "tail of index 2": lambda rng, size: rng.pareto(2, size),
        "rounded": lambda rng, size: np.round(rng.lognormal(0, 1, size)),
    }
    rng = np.random.default_rng(n + m)
    alarms, n_tables = 0, repeats(1000)
    for _ in range(n_tables):
        column = Column.learn(pd.Series(draw[tail](rng, n)), "v")
        found = UnseenValues((Tally.of(column, pd.Series(draw[tail](rng, m))),))
        alarms += bool(found.lines())
    assert alarms <= most_failures(n_tables, 2e-3)


@pytest.mark.parametrize(
    ("training", "values"),
    [
        (["f", "m"], ["m", "f", "m"]),
        (["f", "m"], ["m", "x", "", None]),
        (["nan", "f"], ["nan", float("nan"), "f"]),
        ([True], [True, False, True]),
        ([1, 2], [3, None, -1e300]),
        ([1.0, None], [True, False]),
        (pd.to_datetime(["2020-01-01"]), pd.to_datetime(["2020-01-31", None, "2031-05-05"])),
        (["a"], pd.Series(["a", "b", None], dtype="category")),
    ],
    ids=str,
)
def test_short_columns_are_counted_and_read_as_long_ones(training, values):
    column = Column.learn(pd.Series(training), "v")
    short = pd.Series(values)
    long = pd.concat([short] * FEW, ignore_index=True)
    try:
        read = column.read(long, "column 'v'")
    except InputError as error:
        refused(re.escape(str(error)), column.read, short, "column 'v'")
        return
    pd.testing.assert_series_equal(column.read(short, "column 'v'"), read[: len(short)])
    one, many = Tally.of(column, read[: len(short)]), Tally.of(column, read)
    assert (many.n_missing, many.n_unseen) == (FEW * one.n_missing, FEW * one.n_unseen)
    assert (one.example, one.least, one.greatest) == (many.example, many.least, many.greatest)


@pytest.mark.parametrize(
    ("value", "ending"), [(1e100, "csv"), (-1e150, "parquet"), (1.1e150, "csv"), (1e308, "parquet")]
)
def test_numbers_that_can_be_squared_are_forecast_and_larger_ones_are_named(
    value, ending, tmp_path
):
    X = np.random.default_rng(0).normal(size=(100, 2))
    table = pd.DataFrame(X, columns=["a", "b"])
    # one column varies so little that the distance in units of its range is not finite
    narrow = table.assign(b=np.where(table["b"] > 0, 1e-300, 0))
    large = table.assign(b=np.where(table.index == 6, value, table["b"])).assign(id=table.index)
    path = written(large, tmp_path / f"t.{ending}")
    in_table = RandomizedRegressor(BayesianRidge(), random_state=0).fit(table, X[:, 0])
    in_narrow = RandomizedRegressor(LinearRegression(), random_state=0).fit(narrow, X[:, 0])
    in_array = RandomizedRegressor(BayesianRidge(), random_state=0).fit(X, X[:, 0])
    if abs(value) <= 1e150:
        for model in (in_table, in_narrow):
            with pytest.warns(UnseenValuesWarning, match="lie outside the range"):
                found = model.forecast(large[["a", "b"]], 0.5)
            assert np.isfinite(found.ppf(0.5)).all()
            forecast_parts(model, path, tmp_path / "out.csv", id_column="id", key=KEY)
        assert np.isfinite(in_array.forecast(large[["a", "b"]].to_numpy(), 0.5).ppf(0.5)).all()
        return
    rule = r"row 7 must lie between -1e\+150 and 1e\+150, got "
    for model in (in_table, in_narrow):
        with pytest.raises(InputError, match=rf"^t\.{ending}: column 'b', {rule}"):
            forecast_parts(model, path, tmp_path / "out.csv", id_column="id", key=KEY)
        refused(f"^column 'b', {rule}", model.fit, large[["a", "b"]], X[:, 0])
    for use in (in_array.forecast, lambda rows: in_array.fit(rows, X[:, 0])):
        refused(f"^column 'x1', {rule}", use, large[["a", "b"]].to_numpy())


def test_the_command_reports_unseen_values_in_forecasts_and_audits(evenhand, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"id": np.arange(300), "age": rng.integers(20, 90, 300), "sex": rng.choice(["f", "m"], 300)}
    )
    table["y"] = table["age"] + rng.normal(size=300)
    base = BoostedDistributionRegressor(n_estimators=2, cv=2, random_state=0)
    save(
        RandomizedRegressor(base, alpha=0.2).fit(table[["age", "sex"]], table["y"]), tmp_path / "m"
    )
    (tmp_path / "key").write_bytes(b"0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    wrong = written(table.assign(age=table["age"] * 1000, sex="F"), tmp_path / "wrong.csv")
    asked = ("--id", "id", "--key-file", tmp_path / "key", "--out", tmp_path / "f.csv")
    done = evenhand("predict", wrong, "--forecast", tmp_path / "m", *asked)
    assert done.code == 0
    warned = [line for line in done.err.splitlines() if "training" in line]
    assert [line[:45] for line in warned] == [
        "warning: column 'age': 300 of 300 values lie ",
        "warning: column 'sex': 300 of 300 values neve",
    ]
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        written(table.assign(sex="F")[100 * i : 100 * i + 100], folder / f"{i}.csv")
    for place in (wrong, folder):
        asked = ("--forecast", tmp_path / "m", "--target", "y", "--id", "id", "--json")
        found = json.loads(evenhand("audit", place, *asked).out)
        (sex,) = [record for record in found["unseen"] if record["column"] == "sex"]
        assert (sex["n"], sex["n_unseen"], sex["example"]) == (300, 300, "F")


def test_named_groups_have_the_kind_that_the_model_stores(tmp_path):
    """Codes with leading zeros are own groups in a folder, a file and parts without zeros."""
    from evenhand.scale import audit_parts

    rng = np.random.default_rng(0)
    zips = np.where(np.arange(300) < 150, "123", "0123")
    table = pd.DataFrame({"zip": zips, "x": rng.normal(size=300), "y": rng.normal(size=300)})
    model = RandomizedRegressor(lambda X: (np.zeros(len(X)), np.ones(len(X))), alpha=0.3)
    model.fit(table[["zip", "x"]], table["y"])
    ends = (0, 120, 300)
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        written(table[start:end], tmp_path / f"{i}.csv")
    found = audit_parts(model, tmp_path, "y", groups=["zip"], random_state=0)
    assert found.groups["group"].tolist() == ["everyone", "zip = 0123", "zip = 123"]
    assert found.groups["n"].tolist() == [300, 150, 150]


def test_columns_named_by_numbers_are_watched_too():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)))
    model = RandomizedRegressor(BoostedDistributionRegressor(n_estimators=2)).fit(
        frame, frame[0] + frame[1]
    )
    with pytest.warns(UnseenValuesWarning, match="column '1': 80 of 80 values lie outside"):
        model.forecast(frame.add([0.0, 1e6]), 0.5)


def test_a_name_that_comes_twice_is_refused_in_memory_as_in_files():
    frame = pd.DataFrame(np.zeros((80, 2)), columns=["age", "age"])
    with pytest.raises(InputError, match=r"^X: column name 'age' .*2 times; rename"):
        RandomizedRegressor(BoostedDistributionRegressor(n_estimators=2)).fit(
            frame, np.arange(80.0)
        )


@pytest.mark.parametrize(
    ("a", "b", "is_covered"),
    [(0.5, 7, True), (1.5, 7, False), (np.nan, 7, False), ("0.5", 7, False), (0.5, True, False)],
)
def test_rows_of_plain_numbers_within_training_need_no_other_check(a, b, is_covered):
    schema = Schema.learn(pd.DataFrame({"a": [0.0, 1.0], "b": [5, 9]}))
    frame = pd.DataFrame({"a": [a], "b": [b]})
    assert schema.covers(frame) == is_covered
    assert not schema.covers(frame.astype({"b": "Int64"}))
    assert not Schema.learn(pd.DataFrame({"a": [0.0, 1.0], "b": ["x", "y"]})).covers(frame)
