import os
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import PoissonRegressor

from complaints import complaint, refused
from evenhand import CountRegressor, save
from evenhand._files import write_text
from evenhand.tables import (
    TABLE_ENDINGS,
    check_writable,
    group_columns,
    id_column,
    number_column,
    parse_numbers,
)
from evenhand.tables.files import read_table, write_table
from full_disks import small_disk


def written(folder, content, name="t.csv"):
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def reading_complaint(file):
    message = complaint(read_table, file)
    assert str(file) in message or file.is_dir()
    return message


def test_cells_of_csv_are_text_as_written_and_empty_ones_are_missing(tmp_path):
    table = read_table(written(tmp_path, 'id,country,x\n007,NA,1e5\n,"", 2\n"a,b",FR,true\n'))
    assert table["id"].tolist()[::2] == ["007", "a,b"]
    assert table["country"].tolist()[::2] == ["NA", "FR"]
    assert table["x"].tolist() == ["1e5", " 2", "true"]
    assert table.isna().sum().tolist() == [1, 1, 0]


def test_a_parquet_index_stays_a_column_and_folder_names_invent_none(tmp_path):
    (tmp_path / "year=2020").mkdir()
    file = tmp_path / "year=2020" / "t.parquet"
    pd.DataFrame({"x": [1, 2, 3]}, index=pd.Index(["a", "b", "c"], name="id")).to_parquet(file)
    assert read_table(file)["id"].tolist() == ["a", "b", "c"]
    pd.DataFrame({"x": [1, 2, 3]}).iloc[[2, 0]].to_parquet(file)
    assert read_table(file).columns.tolist() == ["x"]


def test_a_cell_may_be_as_long_as_a_book_and_empty_lines_are_no_rows(tmp_path):
    book = "word " * 50_000
    table = read_table(written(tmp_path, f'\n\nid,text\n\n1,"{book}"\n\n', "a.csv"))
    assert table.values.tolist() == [["1", book]]
    written(tmp_path, "id,text\n\n\n", "a.csv")
    assert "a.csv has no rows" in reading_complaint(tmp_path / "a.csv")


def test_csv_parts_take_the_types_of_parquet_parts_beside_them(tmp_path):
    pd.DataFrame({"x": [1.5], "id": ["007"]}).to_parquet(tmp_path / "a.parquet")
    written(tmp_path, "id,x\n008,2\n", "b.csv")
    assert read_table(tmp_path).values.tolist() == [[1.5, "007"], [2.0, "008"]]
    written(tmp_path, "id,x\n008,old\n", "b.csv")
    assert re.search(r"b\.csv: column 'x' .*double.*old", reading_complaint(tmp_path))


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("", "empty file"),
        ("a,b\n", "no rows"),
        ('a,b\n"x\ny",2\n\n3,4,5\n', "row 2 .*3 values, '3,4,5'.*header has 2"),
        ("Loans of 2020\na,b\n1,2\n", "row 1 .*2 values.*header has 1"),
        ("a,b,a\n1,2,3\n", "column name 'a' .*2 times"),
        ("0.3,17\n0.4,18\n", r"first line .*'0\.3,17'"),
        ("a;b\n1;2\n", "commas.*'a;b'"),
        (b"a,b\n1,x\n2,\xe9t\xe9\n", r"column 'b', row 2 .*UTF-8.*b'\\xe9t\\xe9'"),
        (b"\xe9t\xe9,b\n1,2\n", r"readable \.csv file \('utf-8' codec"),
        (b"a,b\n1,2\n3,4\x00\n", r"column 'b', row 2 .*NUL.*'4\\x00'"),
    ],
)
def test_damaged_csv_files_are_refused_in_one_line(tmp_path, content, facts):
    assert re.search(facts, reading_complaint(written(tmp_path, content)))


def people(n, column, first, last):
    """Write rows `name,town,age,sex` with a stray quote in one column of two rows."""
    rows = [[f"name {i}", f"town {i}", str(20 + i % 60), "f"] for i in range(n)]
    rows[first][column] = '"' + rows[first][column]
    rows[last][column] = '"' + rows[last][column]
    return "\n".join(["name,town,age,sex", *(",".join(row) for row in rows)]) + "\n"


@pytest.mark.parametrize(("column", "apart"), [(0, 1), (1, 50), (3, 2)])
def test_two_stray_quotes_do_not_swallow_the_people_between(tmp_path, column, apart):
    message = reading_complaint(written(tmp_path, people(80, column, 5, 5 + apart)))
    first = ["name 5", "town 5", "", "f"][column]
    assert re.search(rf"row 6 .*{apart + 1} lines.* '{first}.*; .*quote.*never closed", message)


def test_values_of_several_lines_are_values(tmp_path):
    text = 'id,note,x\n1,"12 Main St, Springfield\nIL",5\n2,"one\ntwo, three\nfour",6\n'
    assert read_table(written(tmp_path, text))["x"].tolist() == ["5", "6"]
    assert read_table(written(tmp_path, 'note,x\n"one, two\nthree",5\n'))["x"].tolist() == ["5"]


def test_arrays_written_without_names_and_year_columns_are_no_headerless_files(tmp_path):
    assert read_table(written(tmp_path, "0,1\n5,6\n")).columns.tolist() == ["0", "1"]
    expected = ["region", "2001", "2002"]
    assert read_table(written(tmp_path, "region,2001,2002\na,5,6\n")).columns.tolist() == expected


@pytest.mark.parametrize(
    ("x", "end"),
    [
        (["1", "n/a", "?"], r", row 3 .*number.* '\?'"),
        (["1", "n/a", "2"], " .*1 missing.*row 2"),
        ([1.0, np.nan, np.nan], " .*2 missing.*row 2"),
        (pd.array([None, 1], dtype="Int64"), ".*1 missing.*row 1"),
        ([1.0, 2.0, -np.inf], ", row 3 must lie between .* got -inf"),
        (pd.to_datetime(["2020-01-01"]), ", row 1 .*number.*2020.*such as dates to days"),
        (["n", "y", "NA"], ", row 1 .*number.* 'n'; code the event as 1 and the other value as"),
        (["892,75", "0,5"], ", row 1 .*number.*; write numbers with a decimal point"),
        (["48%", "5.5"], ", row 1 .*number.*; write percentages as fractions"),
        (["1", "a\nb" + "c" * 100], r", row 2 .*number.* 'a\\nbccc"),
    ],
)
def test_number_column_names_the_row_and_the_value(x, end):
    refused(rf"^file: column 'x'{end}", number_column, pd.DataFrame({"x": x}), "x", source="file")


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        (["a", None], "'id', row 2 .*no id"),
        (["a", ""], "'id', row 2 .*no id"),
        ([1.0, np.nan], r"row 1 .*text.* 1\.0"),
        ([True], "row 1 .*text.* True"),
    ],
)
def test_ids_that_could_be_confused_are_refused(values, facts):
    refused(facts, id_column, pd.DataFrame({"id": values}), "id", source="t.csv")


@settings(max_examples=25)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.sampled_from(TABLE_ENDINGS),
)
def test_written_floats_come_back_to_the_last_digit(tmp_path_factory, values, ending):
    file = tmp_path_factory.mktemp("written") / f"t{ending}"
    write_table(pd.DataFrame({"x": values, "id": [f"0{i}" for i in range(len(values))]}), file)
    table = read_table(file)
    assert table["x"].astype(float).tolist() == values
    assert table["id"].tolist() == [f"0{i}" for i in range(len(values))]


@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet", "out.json", "model"])
def test_a_full_disk_is_an_error_that_names_the_file(name):
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(9000)})
    with small_disk(1) as folder:
        (folder / "old").write_bytes(bytes(1_035_000))
        if name == "out.json":
            message = r"out\.json cannot be written: No space .* space$"
            refused(message, write_text, folder / name, "x" * 100_000)
        elif name == "model":
            model = PoissonRegressor().fit(frame, np.round(frame["x"] * 9))
            with pytest.raises(OSError, match="No space left") as caught:
                save(CountRegressor(model).fit(frame, np.round(frame["x"] * 9)), folder / name)
            assert Path(caught.value.filename).parent == folder / name
        else:
            with pytest.raises(OSError, match="No space left") as caught:
                write_table(frame, folder / name)
            assert caught.value.filename == str(folder / name)
            assert [path.name for path in folder.iterdir()] == ["old"]


def test_places_that_cannot_be_written_are_refused_early(tmp_path):
    assert check_writable(tmp_path / "r.HTML", (".html",)) == tmp_path / "r.HTML"
    (tmp_path / "folder.csv").mkdir()
    for name, facts in [
        ("t.txt", r"t\.txt .*\.parquet.*'\.txt'"),
        ("none/t.csv", "no folder .*none"),
        ("folder.csv", r"folder\.csv is a folder"),
    ]:
        refused(facts, write_table, pd.DataFrame({"x": [1]}), tmp_path / name)
    assert os.listdir(tmp_path) == ["folder.csv"]


def groups_of(values):
    groups = group_columns(pd.DataFrame({"v": values}), ["v"], source="t.csv")
    assert all(rows.dtype == np.bool_ for rows in groups.values())
    return {name: np.flatnonzero(rows).tolist() for name, rows in groups.items()}


def test_few_values_give_one_group_each_and_missing_is_its_own():
    assert groups_of([2.0, 1.0, np.nan, 2.0]) == {"v = 1": [1], "v = 2": [0, 3], "v missing": [2]}
    assert groups_of(["b", None, "a"]) == {"v = a": [2], "v = b": [0], "v missing": [1]}
    assert groups_of([True, None, False]) == {"v = False": [2], "v = True": [0], "v missing": [1]}
    expected = {"v = x": [0], "v missing": [1]}
    assert groups_of(pd.Categorical(["x", None], categories=["x", "unused"])) == expected
    assert groups_of([None, None]) == {"v missing": [0, 1]}
    wanted = {"v = 2020-05-01": [0], "v = 2020-05-01 12:00:00": [1]}
    assert groups_of([pd.Timestamp("2020-05-01"), pd.Timestamp("2020-05-01 12:00")]) == wanted


def test_many_numbers_are_halved_at_the_median():
    assert groups_of([*range(12)]) == {"v <= 5.5": [*range(6)], "v > 5.5": [*range(6, 12)]}
    values = [50.0, np.nan, *np.arange(45, 50), *np.arange(51, 56)]
    expected = {"v <= 50": [0, *range(2, 7)], "v > 50": [*range(7, 12)], "v missing": [1]}
    assert groups_of(values) == expected


def test_halves_of_floats_of_32_bits_are_those_of_the_numbers_that_they_print():
    decimals = np.arange(1, 14) / 10
    assert list(groups_of(decimals)) == ["v <= 0.7", "v > 0.7"]
    assert groups_of(decimals.astype(np.float32)) == groups_of(decimals)


def test_no_half_is_empty_where_the_median_is_the_largest_value():
    expected = {"v <= 9": [*range(10)], "v > 9": [*range(10, 30)]}
    assert groups_of([*range(10), *[10] * 20]) == expected
    wanted = {"v <= 4.5": [*range(5)], "v > 4.5": [*range(5, 30)]}
    assert groups_of([*range(10), *[np.inf] * 20]) == wanted


@pytest.mark.parametrize(
    ("values", "cut"),
    [
        (20200601 + np.arange(200) % 20, "20200610"),
        (np.arange(12) * 400_000 - 2_200_000 + 1_000_000, "1000000"),
        (1e6 + np.arange(1, 13) / 8, "1000000.8"),  # between 1000000.75 and 1000000.875
        (np.arange(12) * 1e-9 + 0.1234560003, "0.123456006"),  # between ...0053 and ...0063
        (np.nextafter(1.0, 2.0) + np.arange(12) * 2.0**-52, None),
        (np.r_[-1.7e308 + np.arange(11) * 1e306, 0.0], None),
    ],
    ids=str,
)
def test_the_name_of_a_half_gives_a_cut_that_parts_the_rows(values, cut):
    groups = group_columns(pd.DataFrame({"v": values}), ["v"], source="t.csv")
    (low, low_rows), (high, high_rows) = groups.items()
    shown = low.removeprefix("v <= ")
    assert high == f"v > {shown}"
    assert cut is None or shown == cut
    exact = np.array(
        [Decimal(value) <= Decimal(float(shown)) for value in np.asarray(values).tolist()]
    )
    np.testing.assert_array_equal(low_rows, exact)
    np.testing.assert_array_equal(high_rows, ~exact)
    assert low_rows.any()
    assert high_rows.any()


@pytest.mark.parametrize("first", [2**53, -(2**60), 2**63 + 5])
def test_whole_numbers_that_floats_confuse_are_halved_as_whole_numbers(first):
    values = np.array([first + k for k in range(20)])
    expected = {f"v <= {first + 9}": [*range(10)], f"v > {first + 9}": [*range(10, 20)]}
    assert groups_of(values) == expected
    if first < 2**63:
        for dtype in ("Int64", object):
            with_gap = pd.Series([*values.tolist(), None], dtype=dtype)
            assert groups_of(with_gap) == expected | {"v missing": [20]}
    # nothing above the middle one
    mostly = np.array([first + min(k, 12) for k in range(40)])
    wanted = {f"v <= {first + 11}": [*range(12)], f"v > {first + 11}": [*range(12, 40)]}
    assert groups_of(mostly) == wanted


def test_dates_within_a_microsecond_are_halved():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(20), unit="ns")
    expected = [f"v {sign} 2020-01-01T00:00:00.000000009" for sign in ("<=", ">")]
    assert list(groups_of(days)) == expected


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_many_dates_are_halved_at_a_date_of_the_table(zone):
    days = pd.Series(pd.date_range("2020-01-01", periods=12, tz=zone))
    days[3] = pd.NaT
    assert groups_of(days) == {
        "v <= 2020-01-07": [0, 1, 2, 4, 5, 6],
        "v > 2020-01-07": [7, 8, 9, 10, 11],
        "v missing": [3],
    }


def test_a_column_of_names_makes_no_thousand_groups():
    refused(r"column 'v' .*100 distinct values.*101", groups_of, [f"n{i}" for i in range(101)])


@given(
    st.lists(
        st.one_of(st.none(), st.floats(), st.integers(-3, 3).map(float)), min_size=1, max_size=40
    )
)
def test_the_groups_of_a_column_part_the_rows(values):
    table = pd.DataFrame({"v": pd.Series(values, dtype=float)})
    groups = group_columns(table, ["v"], source="t.csv")
    np.testing.assert_array_equal(np.sum(list(groups.values()), axis=0), np.ones(len(values)))
    assert all(rows.any() for rows in groups.values())


def test_numbers_among_text_keep_their_rows():
    numbers, wrong = parse_numbers(pd.Series([3, "1", 2.0, " 5 ", 1, "x"], dtype=object))
    assert numbers[:5].tolist() == [3, 1, 2, 5, 1]
    assert wrong.tolist() == [False] * 5 + [True]
