"""The examples of the documentation pages run and print what the pages say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs"
WITH_EXAMPLES = ("decide.rst", "price-of-proof.rst", "randomize.rst")


@pytest.mark.skipif(not PAGES.exists(), reason="the documentation is not here")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_of_the_page_run(name: str) -> None:
    done = doctest.testfile(str(PAGES / name), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0
