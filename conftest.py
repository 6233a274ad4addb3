"""Runs the examples in docstrings and the Python of the README as tests."""

from __future__ import annotations

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

pytest_collect_file = (
    Sybil(
        parsers=[DocTestParser(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)],
        patterns=["src/**/*.py"],
        document_types={".py": PythonDocStringDocument},
    )
    + Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md"])
).pytest()
