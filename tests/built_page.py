"""A page of the documentation, built alone with an extension of `docs/_ext`."""

import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs"


def built_page(folder, page, extension, files=()):
    """Build one page in an empty folder, where links to others lead nowhere; return its HTML."""
    sphinx = pytest.importorskip("sphinx.application")
    for name in (f"{page}.rst", "_static/evenhand.css", *files):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes((PAGES / name).read_bytes())
    (folder / "conf.py").write_text(
        f"extensions = ['sphinx.ext.autodoc', '{extension}']\nroot_doc = '{page}'\n"
        "html_theme = 'basic'\nhtml_static_path = ['_static']\nhtml_css_files = ['evenhand.css']\n"
    )
    sys.path.insert(0, str(PAGES / "_ext"))
    try:
        html = folder / "html"
        sphinx.Sphinx(
            folder, folder, html, folder / "tree", "html", status=None, warning=None
        ).build()
    finally:
        sys.path.remove(str(PAGES / "_ext"))
    return html / f"{page}.html"
