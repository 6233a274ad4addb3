"""Runs the Python of the README as tests; pytest itself runs the examples in docstrings."""

from __future__ import annotations

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

# each block of the README stands on its own: a test runner may send them to different workers
pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md"]).pytest()
