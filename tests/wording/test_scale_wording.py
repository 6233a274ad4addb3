"""Exact wording of the messages of `evenhand.scale`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand import InputError
from evenhand.scale import ColumnSubject, audit_parts, dask_client, forecast_parts

GIVEN = ColumnSubject("mean", "std")
KEY = b"sixteen bytes or more"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a file, and a folder of one part without its standard deviation."""
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"id": ["a", "b"], "mean": [0.0, 1.0], "std": [1.0, -1.0], "y": [0.1, 0.2]})
    Path("in").mkdir()
    rows.to_parquet("in/part.parquet")
    rows.to_parquet("one.parquet")
    return tmp_path


def forecast(table: str, out: str, **options: Any) -> Any:
    return forecast_parts(GIVEN, table, out, id_column="id", key=KEY, **options)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: dask_client("tcp://127.0.0.1:9", 2).__enter__(),
            "give a scheduler or a number of workers, not both",
        ),
        (
            lambda: audit_parts(GIVEN, "in", "mean"),
            "in: column 'mean' is the target and cannot be its own forecast; name another column",
        ),
        (
            lambda: audit_parts(GIVEN, "in", "y", groups=["y"]),
            "groups contains 'y', the target: groups defined by the outcome are miscalibrated under"
            " any model; leave it out",
        ),
        (
            lambda: forecast("in", "out.csv", skip_bad=True),
            "out.csv is a file, but a folder is needed here because a bad part may be found after"
            " half of it is written; name a new folder",
        ),
        (
            lambda: forecast("one.parquet", "out", client=object()),
            "one.parquet is one file, but workers need a folder of parts; run without workers",
        ),
        (
            lambda: forecast("in", "in"),
            "in already exists and is not an empty folder; name a new folder",
        ),
        (
            lambda: forecast("in", "no/out"),
            "no/out cannot be created because no is not a writable folder; name another",
        ),
    ],
)
def test_messages_are_sentences(folder: Path, act: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        act()
    assert str(raised.value).replace(f"{folder}/", "") == message


def test_a_folder_without_a_good_part_names_the_first(folder: Path) -> None:
    with pytest.raises(InputError) as raised:
        forecast("in", "out", skip_bad=True)
    assert str(raised.value).startswith(
        "in: no part can be used (1 tried); the first error: part.parquet: "
    )
