"""What several test files need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder with data sets that are not part of the repository, or skip the test."""
    named = os.environ.get("EVENHAND_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set EVENHAND_DATA to the folder with communities.data and the credit table")
    return folder
