"""Every example of the gallery can be downloaded as a notebook, which runs as its script does."""

from __future__ import annotations

import ast
import doctest
import json
from pathlib import Path
from typing import Any

import pytest

from built_page import PAGES, built_page

notebook = pytest.importorskip("sphinx_gallery.notebook")
parser = pytest.importorskip("sphinx_gallery.py_source_parser")

GALLERY = sorted((PAGES / "gallery").glob("plot_*.py"))
BUILT = PAGES / "_build" / "html"

pytestmark = pytest.mark.skipif(not GALLERY, reason="the documentation is not here")


def code_cells(script: Path) -> list[str]:
    """Return the code cells of the notebook that the gallery makes of a script."""
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF

    _, blocks = parser.split_code_and_text_blocks(str(script))
    conf = {**DEFAULT_GALLERY_CONF, "first_notebook_cell": None, "last_notebook_cell": None}
    made = notebook.jupyter_notebook(blocks, conf, str(script.parent))
    return ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]


def statements(code: str) -> list[str]:
    """Return the statements of a program without comments and docstrings."""
    body = ast.parse(code).body
    return [
        ast.dump(one)
        for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_the_cells_of_a_notebook_are_the_statements_of_its_script(script: Path) -> None:
    cells = code_cells(script)
    # explained in steps, and not one cell of code
    assert len(cells) >= 2
    made = [one for cell in cells for one in statements(cell)]
    assert made == statements(script.read_text(encoding="utf-8"))


def test_the_cells_of_a_notebook_run_in_order() -> None:
    # the cheapest one; the others have the statements of scripts that run in tests, too
    name = "plot_price_of_proof"
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    scope: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell in code_cells(PAGES / "gallery" / f"{name}.py"):
            exec(compile(cell, name, "exec"), scope)
        assert plt.get_fignums()
    finally:
        plt.close("all")


def test_the_notebook_of_the_tutorial_has_its_examples(tmp_path: Path) -> None:
    page = built_page(tmp_path, "tutorial", "page_notebook")
    assert 'href="_downloads/tutorial.ipynb"' in page.read_text(encoding="utf-8")
    file = page.parent / "_downloads" / "tutorial.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    text = (PAGES / "tutorial.rst").read_text(encoding="utf-8")
    # each example is a step of the page, and the page's own test runs them in order
    examples = doctest.DocTestParser().get_examples(text)
    assert statements(code) == statements("".join(example.source for example in examples))
    explained = "".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    assert explained.startswith("# Ten-minute tutorial")
    assert "## Repair" in explained
    assert "doctest:" not in code


@pytest.mark.skipif(not BUILT.is_dir(), reason="the documentation is not built")
@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_each_example_links_its_script_and_its_notebook(script: Path) -> None:
    page = (BUILT / "auto_examples" / f"{script.stem}.html").read_text(encoding="utf-8")
    for suffix in ("py", "ipynb"):
        assert f"/{script.stem}.{suffix}" in page
        assert list((BUILT / "_downloads").glob(f"*/{script.stem}.{suffix}"))
