"""The command, and what the studies import."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from reproduction.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "reproduction").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_only_public_names_of_the_package_are_imported(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenhand"):
            module = importlib.import_module(str(node.module))
            public = {*module.__all__, "__version__"}
            assert {alias.name for alias in node.names} <= public, node.module
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("evenhand.") for alias in node.names)


def test_the_command_runs_a_study_with_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []
    monkeypatch.setattr("reproduction.crime.run", lambda **options: given.append(options) or "ok")
    monkeypatch.setattr(sys, "argv", ["reproduction", "crime", "--splits", "3", "--jobs", "1"])
    main()
    assert given == [{"out": Path("results", "crime"), "splits": 3, "jobs": 1}]
    assert capsys.readouterr().out == "ok\n"


def test_a_missing_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["reproduction", "crime", *where])
    with pytest.raises(SystemExit):
        main()
    assert "nowhere" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()
