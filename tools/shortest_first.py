"""Plugin of pytest: the tests of each file run in the order of their durations in the first run.

    python -m pytest -p shortest_first tests/...

The first run in a folder writes the durations to `durations.json` there, which later ones read.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

KNOWN = Path("durations.json").absolute()
measured = Counter[str]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests within their files."""
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    files = {path: i for i, path in enumerate(dict.fromkeys(item.path for item in items))}
    items.sort(key=lambda item: (files[item.path], known.get(item.nodeid, 0.0)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the duration of a phase of a test."""
    measured[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    """Write the durations of the first run."""
    if not KNOWN.exists():
        KNOWN.write_text(json.dumps(measured))
