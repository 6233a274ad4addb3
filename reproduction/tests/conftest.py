"""Runs of the studies at their smallest sizes, shared by all processes of a test run."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand import InputError
from reproduction.datasets import load_credit, load_crime


@pytest.fixture(scope="session")
def finished(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], str]], tuple[Path, dict[str, Any]]]:
    """Return a function that runs a study once and returns its folder and results."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def run_once(name: str, run: Callable[[Path], str]) -> tuple[Path, dict[str, Any]]:
        out = shared / f"reproduction-{name}"
        with (shared / f"reproduction-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (out / "index.html").exists():
                run(out)
        return out, json.loads((out / "results.json").read_text())

    return run_once


@pytest.fixture(scope="session")
def crime_data() -> None:
    """Skip a test without the crime data."""
    try:
        load_crime()
    except InputError:
        pytest.skip("needs communities.data in the folder named by EVENHAND_DATA")


@pytest.fixture(scope="session")
def credit_data() -> None:
    """Skip a test without the credit data."""
    try:
        load_credit()
    except InputError:
        pytest.skip("needs the credit table in the folder named by EVENHAND_DATA")
