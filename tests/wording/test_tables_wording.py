"""Exact sentences of the errors about tables; other tests check their facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand._validate import InputError
from evenhand.tables import (
    TableWriter,
    check_writable,
    id_column,
    number_column,
    open_parts,
    read_table,
    refuse_repeated,
)

FILES: list[tuple[str | bytes, str]] = [
    ("", "t.csv is an empty file; write a table with at least one row"),
    ("a,b\n", "t.csv has no rows of data; at least one is needed"),
    (
        "a,b\n1,2\n3\n",
        "t.csv: row 2 has 1 value, '3', and the header has 2; quote values that contain commas, and"
        " name all columns in the first line",
    ),
    (
        "a,b,a\n1,2,3\n",
        "t.csv: column name 'a' appears 2 times; rename one, or add a first line of column names if"
        " there is none",
    ),
    (
        "0.3,17\n0.4,18\n",
        "t.csv: the first line must name the columns, got '0.3,17'; add a first line of column"
        " names",
    ),
    (
        "a;b\n1;2\n",
        "t.csv must separate values by commas, got 'a;b'; save it as comma-separated csv",
    ),
    (
        b"a,b\n1,\xe9t\xe9\n",
        "t.csv: column 'b', row 1 must be UTF-8 text, got b'\\xe9t\\xe9'; save the file with UTF-8"
        " encoding",
    ),
    (
        b"a,b\n1,2\n3,4\x00\n",
        "t.csv: column 'b', row 2 must contain no NUL characters, got '4\\x00'; write the file"
        " again",
    ),
    (
        'a,b,c\n1,"2,3\n4,5,6\n7,8",9\n',
        "t.csv: column 'b', row 1 contains 3 lines that look like rows of the table,"
        " '2,3\\n4,5,6\\n7,8'; find the quote that is never closed, and double quotes inside"
        " values",
    ),
]


@pytest.mark.parametrize(("content", "sentence"), FILES, ids=[one[1][:40] for one in FILES])
def test_sentence_about_a_csv_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | bytes, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError) as caught:
        read_table("t.csv")
    assert str(caught.value) == sentence


PARTS: list[tuple[dict[str, dict[str, list[Any]]], str]] = [
    (
        {"a.parquet": {"x": [1]}, "b.parquet": {"y": [1]}},
        "t/b.parquet has other columns than a.parquet: 'x' is missing, 'y' is additional; repair or"
        " remove it",
    ),
    (
        {"a.parquet": {"x": [1]}, "b.parquet": {"x": ["old"]}},
        "t/b.parquet: column 'x' has the type string, but int64 in earlier parts; write one type in"
        " all parts",
    ),
    ({}, "t is a folder without parts; parts end in .csv, .csv.gz, .parquet"),
]


@pytest.mark.parametrize(("parts", "sentence"), PARTS, ids=[one[1][:40] for one in PARTS])
def test_sentence_about_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t").mkdir()
    for name, columns in parts.items():
        pd.DataFrame(columns).to_parquet(Path("t", name))
    with pytest.raises(InputError) as caught:
        open_parts("t")
    assert str(caught.value).replace("large_string", "string") == sentence


def number(values: Any) -> Any:
    return number_column(pd.DataFrame({"x": values}), "x", source="t.csv")


def ids(values: Any) -> Any:
    return id_column(pd.DataFrame({"id": values}), "id", source="t.csv")


def write_without_with(frame: pd.DataFrame) -> None:
    TableWriter("out.csv").write(frame)


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: read_table("none.csv"), "none.csv: no such path; check its spelling and folder"),
    (
        lambda: read_table("t.xlsx"),
        "t.xlsx must end in .csv, .csv.gz, .parquet, got '.xlsx'; save it in one of these formats",
    ),
    (
        lambda: number(["1", "?"]),
        "t.csv: column 'x', row 2 must be a number, got '?'; correct it or drop the row",
    ),
    (
        lambda: number([1.0, None]),
        "t.csv: column 'x' has 1 missing value, the first in row 2; drop that row",
    ),
    (
        lambda: number([None, None]),
        "t.csv: column 'x' has 2 missing values, the first in row 1; drop those rows",
    ),
    (
        lambda: number([float("inf")]),
        "t.csv: column 'x', row 1 must be finite, got inf; correct it or drop the row",
    ),
    (lambda: ids(["a", None]), "t.csv: column 'id', row 2 has no id; fill it or drop the row"),
    (
        lambda: ids([1.5]),
        "t.csv: column 'id', row 1 must be text or a whole number, got 1.5; write ids as text, as"
        " decimal numbers lose digits",
    ),
    (
        lambda: refuse_repeated(["a", "1", 1], "id", source="t.csv"),
        "t.csv: column 'id', row 3 repeats the id 1 of row 2; rows of one person are not"
        " independent: name people who have several rows with --cluster id",
    ),
    (
        lambda: check_writable("none/t.csv", (".csv",)),
        "none/t.csv: there is no folder none; create it first",
    ),
    (
        lambda: write_without_with(pd.DataFrame({"x": [1]})),
        "out.csv: the writer is closed; write inside one `with` block, and start again after an"
        " error",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[one[1][:40] for one in CALLS])
def test_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.xlsx").write_text("x")
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence
