"""Every example of the gallery can be downloaded as a notebook, which runs as its script does."""

import ast
import doctest
import json

from built_page import PAGES, built_page


def statements(code):
    """Return the statements of a program without comments and docstrings."""
    body = ast.parse(code).body
    return [
        ast.dump(one)
        for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]


def test_the_notebook_of_the_tutorial_has_its_examples(tmp_path):
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
