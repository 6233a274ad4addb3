"""The Python of the README runs as it stands, block after block, as a reader would run it."""

from __future__ import annotations

from pathlib import Path

from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from test_docs import check_shell

README = Path(__file__).parent.parent / "README.md"


def test_the_blocks_of_the_readme_run_in_order() -> None:
    # one test, since blocks build on each other and parallel workers may take tests apart
    blocks = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(README))
    assert len(blocks) >= 3
    for block in blocks:
        block.evaluate()


def test_the_shell_lines_of_the_readme_name_what_is_there() -> None:
    blocks = list(
        Sybil(parsers=[CodeBlockParser(language="sh", evaluator=check_shell)]).parse(README)
    )
    assert len(blocks) >= 3
    for block in blocks:
        block.evaluate()
