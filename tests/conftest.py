"""What several test files need."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_outcome import Command, Outcome
from evenhand.cli import main


def pytest_report_header() -> list[str]:
    is_other = hasattr(sys.modules.get("sitecustomize"), "OtherUfunc")
    return ["mathematics library: another one, off by a unit in the last place"] if is_other else []


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder with data sets that are not part of the repository, or skip the test."""
    named = os.environ.get("EVENHAND_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"no folder {folder}: set EVENHAND_DATA to the folder with communities.data and the"
            " credit table"
        )
    return folder


@pytest.fixture
def evenhand(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    """Call the command in this process."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)

    def call(*args: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["evenhand", *map(str, args)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code
        return Outcome(0 if code is None else int(code), *capfd.readouterr())

    with warnings.catch_warnings():
        yield call
