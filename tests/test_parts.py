"""Tables in blocks: read as `read_table` reads, bad input is named, output is whole."""

import gzip
import io
import itertools
import os
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from complaints import complaint, refused
from evenhand._validate import InputError
from evenhand.tables import Column, Schema, TableWriter, open_parts
from evenhand.tables.files import read_table

N_ROWS = 23


def rows_of(n, seed=0):
    """Return a table with a column of each kind, some with gaps."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(n) < 0.2
    return pd.DataFrame(
        {
            "id": [f"0{i}" for i in rng.integers(0, 1000, n)],
            "q0.5": rng.normal(size=n),
            "q0": rng.integers(-5, 5, n),
            "gappy": np.where(gaps, np.nan, rng.normal(size=n)),
            "day": (
                pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
            ),
            "yes": rng.random(n) < 0.5,
        }
    )


def joined(parts, columns=None, size=7):
    """Read all blocks and join them, checking their lengths and the numbers of their first rows."""
    found = []
    for i in range(len(parts)):
        blocks = list(parts.blocks(i, columns, size=size))
        lengths = [len(block) for _, block in blocks]
        assert all(length == size for length in lengths[:-1])
        assert all(0 < length <= size for length in lengths)
        assert [start for start, _ in blocks] == [k * size for k in range(len(blocks))]
        assert parts.counts[i] in (None, sum(lengths))
        found += [block for _, block in blocks]
    return pd.concat(found, ignore_index=True)


def reading_complaint(parts):
    message = complaint(lambda: list(parts.blocks(0)))
    assert str(parts.paths[0]) in message
    return message


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=3).filter(any),
    st.integers(1, 45),
    st.integers(1, 45),
    st.sampled_from([".parquet", ".csv", ".csv.gz"]),
)
def test_blocks_of_any_size_make_up_the_table_whatever_the_row_groups(
    tmp_path_factory, lengths, row_group, size, ending
):
    folder = tmp_path_factory.mktemp("parts")
    for i, length in enumerate(lengths):
        frame, file = rows_of(length, seed=i), folder / f"part-{i}{ending}"
        if ending == ".parquet":
            frame.to_parquet(file, row_group_size=row_group)
        else:
            frame.to_csv(file, index=False)
    parts = open_parts(folder)
    whole = read_table(folder)
    assert parts.columns == tuple(whole.columns)
    pd.testing.assert_frame_equal(joined(parts, size=size).astype(whole.dtypes), whole)
    columns = ["q0", "id"]
    found = joined(parts, columns, size=size).astype(whole[columns].dtypes)
    pd.testing.assert_frame_equal(found, whole[columns])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any), st.integers(1, 12))
def test_row_groups_of_any_lengths_are_cut_anew(tmp_path_factory, lengths, size):
    """Small and large row groups give equal blocks; Arrow's own batches of categories do not."""
    file = tmp_path_factory.mktemp("groups") / "t.parquet"
    ends = np.cumsum([0, *lengths])
    whole = pa.table({"x": np.arange(ends[-1])})
    whole = whole.append_column("kind", whole["x"].cast(pa.string()).dictionary_encode())
    with pq.ParquetWriter(file, whole.schema) as writer:
        for a, b in itertools.pairwise(ends):
            writer.write_table(whole.slice(a, b - a))
    found = [block for _, block in open_parts(file).blocks(0, size=size)]
    starts = range(0, ends[-1], size)
    assert [len(block) for block in found] == [min(size, ends[-1] - start) for start in starts]
    joined = pd.concat([block.astype({"kind": str}) for block in found], ignore_index=True)
    assert joined["x"].tolist() == list(range(ends[-1]))
    assert joined["kind"].tolist() == joined["x"].astype(str).tolist()


def test_columns_come_in_the_order_asked_and_parts_in_the_order_of_names(tmp_path):
    pd.DataFrame({"b": [3], "a": [4]}).to_parquet(tmp_path / "2.parquet")
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "1.parquet")
    (tmp_path / "3.csv").write_text("b,a\n5,6\n")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".1.crc").touch()
    parts = open_parts(tmp_path)
    assert parts.names == ("1.parquet", "2.parquet", "3.csv")
    assert joined(parts).to_dict("list") == {"a": [1, 4, "6"], "b": [2, 3, "5"]}
    numbers = Schema((Column("a", "number"), Column("b", "number")))
    assert joined(parts.typed(numbers.apply)).to_dict("list") == {"a": [1, 4, 6], "b": [2, 3, 5]}
    assert joined(parts, ["b", "a"]).columns.tolist() == ["b", "a"]
    assert parts.counts == (1, 1, None)


def test_a_column_has_one_type_in_all_blocks_of_all_parts(tmp_path):
    first = {
        "small": pa.array([1, 2], pa.int32()),
        "count": pa.array([1, 2]),
        "money": pa.array([Decimal("1.25"), Decimal(2)]),
        "nothing": pa.nulls(2),
        "kind": pa.array(["u", "v"]).dictionary_encode(),
    }
    second = {
        "money": pa.array([Decimal("0.500"), Decimal("7.125")]),
        "small": pa.array([2**40, 4], pa.int64()),
        "count": pa.array([0.5, 1.5]),
        "nothing": pa.array([3, 4]),
        "kind": pa.array(["w", "v"]).dictionary_encode(),
    }
    pq.write_table(pa.table(first), tmp_path / "a.parquet")
    pq.write_table(pa.table(second), tmp_path / "b.parquet")
    parts = open_parts(tmp_path)
    blocks = [block for i in range(2) for _, block in parts.blocks(i, size=1)]
    for block in blocks:
        expected = [np.int64, np.float64, np.float64]
        assert [block[name].dtype for name in ("small", "count", "money")] == expected
        assert isinstance(block["kind"].dtype, pd.CategoricalDtype)
    assert pd.concat(blocks)["money"].tolist() == [1.25, 2.0, 0.5, 7.125]
    assert pd.concat(blocks)["small"].tolist() == [1, 2, 2**40, 4]
    assert [kind for block in blocks for kind in block["kind"]] == ["u", "v", "w", "v"]
    assert [str(field.type) for field in parts.schema][:4] == ["int64", "double", "double", "int64"]


def test_a_column_may_be_required_in_one_part_and_not_in_another(tmp_path):
    for name, nullable in (("a", False), ("b", True)):
        table = pa.table({"x": [1]}).cast(pa.schema([pa.field("x", pa.int64(), nullable=nullable)]))
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert joined(open_parts(tmp_path))["x"].tolist() == [1, 1]
    assert read_table(tmp_path)["x"].tolist() == [1, 1]


def test_whole_numbers_that_floats_confuse_are_refused_with_their_column(tmp_path):
    pd.DataFrame({"x": [2**53 + 1]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"x": [0.5]}).to_parquet(tmp_path / "b.parquet")
    facts = r"a\.parquet: column 'x' .*double"
    assert re.search(facts, reading_complaint(open_parts(tmp_path)))
    refused(facts, read_table, tmp_path)


def damaged(folder):
    """Write two good parts and bad ones between; return what the error of each bad one names."""
    good = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]})
    for name in ("p0.parquet", "p9.parquet", "p1.parquet"):
        good.to_parquet(folder / name)
    (folder / "p1.parquet").write_bytes((folder / "p1.parquet").read_bytes()[:-20])
    good.drop(columns="x").to_parquet(folder / "p2.parquet")
    good.assign(x=["old", "new"]).to_parquet(folder / "p3.parquet")
    (folder / "p4.parquet").touch()
    (folder / "p5.parquet").write_bytes(b"no parquet at all")
    (folder / "p6.csv").write_text("id,y\na,1\n")
    (folder / "p7.csv.gz").write_bytes(b"id,x\na,1\n")
    (folder / "p8.txt").write_text("a note")
    return {
        "p1.parquet": r"readable \.parquet file",
        "p2.parquet": r"p0\.parquet: 'x' is missing",
        "p3.parquet": "Field x .*double vs .*string",
        "p4.parquet": "empty file",
        "p5.parquet": r"readable \.parquet file",
        "p6.csv": r"p0\.parquet: 'x' is missing, 'y' is additional",
        "p7.csv.gz": r"readable \.csv\.gz file",
        "p8.txt": r"\.csv, \.csv\.gz, \.parquet",
    }


def test_bad_parts_are_named_or_skipped_with_the_reason(tmp_path):
    expected = damaged(tmp_path)
    parts = open_parts(tmp_path, skip_bad=True)
    assert parts.names == ("p0.parquet", "p9.parquet")
    assert joined(parts)["x"].tolist() == [1.0, 2.0, 1.0, 2.0]
    assert list(parts.skipped) == list(expected)
    for name, facts in expected.items():
        assert re.search(facts, parts.skipped[name])
        assert name in parts.skipped[name]
        assert "\n" not in parts.skipped[name]
    for name, facts in expected.items():
        message = complaint(open_parts, tmp_path)
        assert str(tmp_path / name) in message
        assert re.search(facts, message)
        (tmp_path / name).unlink()
    assert len(open_parts(tmp_path)) == 2


def test_a_table_without_any_good_part_or_row_is_refused(tmp_path):
    assert "no such path" in complaint(open_parts, tmp_path / "none")
    assert "without parts" in complaint(open_parts, tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    pattern = r"no part .*1 tried.*a\.parquet"
    assert re.search(pattern, complaint(open_parts, tmp_path, skip_bad=True))
    rows_of(0).to_parquet(tmp_path / "a.parquet")
    assert "no rows" in complaint(open_parts, tmp_path)
    (tmp_path / "b.csv").write_text(",".join(rows_of(1).columns) + "\n")
    assert "no rows" in complaint(open_parts, tmp_path)


def test_parts_without_rows_give_columns_but_no_types(tmp_path):
    pd.DataFrame({name: np.zeros(0) for name in rows_of(1)}).to_parquet(tmp_path / "a.parquet")
    rows_of(3).to_parquet(tmp_path / "b.parquet")
    parts = open_parts(tmp_path)
    assert [len(list(parts.blocks(i))) for i in range(2)] == [0, 1]
    pd.testing.assert_frame_equal(joined(parts), rows_of(3))
    pd.testing.assert_frame_equal(read_table(tmp_path), rows_of(3))
    (tmp_path / "b.parquet").unlink()
    rows_of(2).to_csv(tmp_path / "b.csv", index=False)
    assert len(joined(open_parts(tmp_path))) == 2
    pd.DataFrame({"x": []}).to_parquet(tmp_path / "c.parquet")
    refused(r"c\.parquet .*columns .*a\.parquet", open_parts, tmp_path)


def test_a_parquet_column_that_comes_twice_is_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(table, tmp_path / "t.parquet")
    refused("'x' .*2 times", open_parts, tmp_path / "t.parquet")


def test_damage_in_the_middle_of_a_file_is_named_when_the_blocks_come_to_it(tmp_path):
    file = tmp_path / "t.parquet"
    with TableWriter(file) as writer:
        for seed in range(3):
            writer.write(rows_of(50, seed))
    # the last byte of a page: one value would be another, and only the checksum shows it
    chunk = pq.read_metadata(file).row_group(2).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(file.read_bytes())
    content[start + chunk.total_compressed_size - 1] ^= 0xFF
    file.write_bytes(content)
    parts = open_parts(file)
    blocks = parts.blocks(0, ["q0.5"], size=50)
    assert [start for start, _ in (next(blocks), next(blocks))] == [0, 50]
    refused(r"t\.parquet .*readable \.parquet file \(", next, blocks)
    expected = [x for seed in range(3) for x in rows_of(50, seed)["q0"]]
    assert joined(parts, ["q0"])["q0"].tolist() == expected
    refused("readable", read_table, file)


def test_what_pandas_notes_in_a_file_need_not_be_whole(tmp_path):
    file = tmp_path / "t.parquet"
    notes = {b"pandas": b'{"index_columns": [', b"other": b"\xff"}
    pq.write_table(pa.table({"x": [1, 2]}).replace_schema_metadata(notes), file)
    assert joined(open_parts(file))["x"].tolist() == [1, 2]
    assert read_table(file)["x"].tolist() == [1, 2]


def test_a_part_that_changed_or_went_since_it_was_opened_is_named(tmp_path):
    for ending in (".parquet", ".csv"):
        folder = tmp_path / ending[1:]
        folder.mkdir()
        with TableWriter(folder / f"t{ending}") as writer:
            writer.write(pd.DataFrame({"x": [1], "y": [2]}))
        parts = open_parts(folder)
        with TableWriter(folder / f"t{ending}") as writer:
            writer.write(pd.DataFrame({"x": [1], "z": [2]}))
        assert "'y' is missing, 'z' is additional" in reading_complaint(parts)
        parts.paths[0].unlink()
        assert "readable" in reading_complaint(parts)
    rows_of(3).to_parquet(tmp_path / "t.parquet")
    parts = open_parts(tmp_path / "t.parquet")
    rows_of(4).to_parquet(tmp_path / "t.parquet")
    assert re.search("3 rows when it was opened.* 4", reading_complaint(parts))


def test_a_row_group_is_never_held_whole(tmp_path):
    file, n = tmp_path / "t.parquet", 500_000
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=n) for name in "abcd"})
    pq.write_table(table, file, row_group_size=n)
    del table
    before, most = pa.total_allocated_bytes(), 0
    for _, _block in open_parts(file).blocks(0, size=5_000):
        most = max(most, pa.total_allocated_bytes() - before)
    # a page is about a megabyte, packed and unpacked; the row group has 16 megabytes
    assert most < 10e6


def written(file, cuts):
    frame = rows_of(N_ROWS)
    edges = [0, *cuts, N_ROWS]
    with TableWriter(file) as writer:
        for start, stop in itertools.pairwise(edges):
            assert writer.n_rows == start
            writer.write(frame.iloc[start:stop])
        assert writer.n_rows == N_ROWS
    return file


@pytest.mark.parametrize("cuts", [[0], [1, 1, 20]])
def test_blocks_are_written_as_pandas_writes_the_whole(tmp_path, cuts):
    frame = rows_of(N_ROWS)
    buffer = io.BytesIO()
    frame.to_csv(buffer, index=False, lineterminator="\n")
    assert written(tmp_path / "t.csv", cuts).read_bytes() == buffer.getvalue()
    packed = written(tmp_path / "t.csv.gz", cuts).read_bytes()
    assert gzip.decompress(packed) == buffer.getvalue()
    assert packed[4:8] == bytes(4)  # no time stamp
    assert packed == written(tmp_path / "other.csv.gz", cuts).read_bytes()
    pd.testing.assert_frame_equal(read_table(written(tmp_path / "t.parquet", cuts)), frame)


def test_later_blocks_take_the_columns_and_types_of_the_first(tmp_path):
    with TableWriter(tmp_path / "t.parquet") as writer:
        writer.write(pd.DataFrame({"x": [0.5, 1.5], "y": [1, 2]}))
        writer.write(pd.DataFrame({"y": [3.0, np.nan], "x": [7, 8]}))
    table = pq.read_table(tmp_path / "t.parquet")
    assert [str(field.type) for field in table.schema] == ["double", "int64"]
    assert table.to_pydict() == {"x": [0.5, 1.5, 7.0, 8.0], "y": [1, 2, 3, None]}
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write(pd.DataFrame({"x": [0.5], "y": [1]}))
        writer.write(pd.DataFrame({"y": [3], "x": [7]}))
    assert (tmp_path / "t.csv").read_text() == "x,y\n0.5,1\n7,3\n"


class StoppedError(Exception):
    pass


def write_two(file, second):
    with TableWriter(file) as writer:
        writer.write(pd.DataFrame({"x": [1], "y": ["a"]}))
        if second is None:
            raise StoppedError
        writer.write(second)


@pytest.mark.parametrize(
    ("ending", "second", "error", "facts"),
    [
        (".csv.gz", None, StoppedError, None),
        (".parquet", None, StoppedError, None),
        (".csv", pd.DataFrame({"x": [1]}), InputError, "row 1 .*first block.*'y' is missing"),
        (".parquet", pd.DataFrame({"x": [1], "y": 2, "z": 1}), InputError, "'z' is additional"),
        (".csv", pd.DataFrame([[1, 2, 3]], columns=["x", "y", "y"]), InputError, "'y' is repeated"),
    ],
)
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, ending, second, error, facts):
    file = tmp_path / f"t{ending}"
    for old in (None, b"old"):
        if old is not None:
            file.write_bytes(old)
        with pytest.raises(error, match=facts):
            write_two(file, second)
        assert os.listdir(tmp_path) == ([] if old is None else [file.name])
    assert file.read_bytes() == b"old"


def test_values_that_do_not_fit_the_first_block_are_refused_with_their_column(tmp_path):
    with pytest.raises(InputError, match=r"block after row 1: column 'x' .*int64"):
        write_two(tmp_path / "t.parquet", pd.DataFrame({"x": [0.5], "y": ["b"]}))
    assert os.listdir(tmp_path) == []


def test_a_writer_without_blocks_writes_no_file(tmp_path):
    with TableWriter(tmp_path / "t.csv"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_process_that_ends_after_the_head_of_a_csv_file_ends_with_its_own_code(tmp_path):
    """Threads of the reader must hold no Python object: else 4 of 10 aborted with torch."""
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "1;x\n" * 50)
    code = (
        "import os, sys, torch\nfrom evenhand.tables import open_parts\n"
        "for _ in range(4):\n"  # torch is imported once, each end is that of a fork
        "    if (child := os.fork()) == 0:\n        break\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
        "else:\n    raise SystemExit\n"
        "try:\n    open_parts(sys.argv[1])\nexcept ValueError:\n    raise SystemExit(2)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    assert shown.stdout.split() == ["2"] * 4


def test_the_head_of_a_csv_file_is_read_past_rows_of_the_wrong_length(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n1,2,3\n")
    assert open_parts(path).columns == ("a", "b")
    refused(r"row 1 .*1 value.*header has 2", next, iter(open_parts(path).blocks(0)))
