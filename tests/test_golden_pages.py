"""Golden pages: the text of the demo's three reports, and of their audits in a terminal.

`tests/golden/pages/<name>.json` holds an audit as the demo wrote it, `<name>.html.txt` the text of
the page made from it and `<name>.txt` its text for a terminal. Nothing is computed, so the texts
are the same on every machine. A change of words writes them again; the difference is then read::

    python tests/test_golden_pages.py --write
    python tests/test_golden_pages.py --write evenhand-demo     # audits of a new demo as well
"""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evenhand.report import audit_html, audit_text

PAGES = Path(__file__).resolve().parent / "golden" / "pages"
NAMES = ("audit", "audit-repaired", "audit-randomized")
INLINE = {"strong", "em", "code", "a", "span", "small"}


class PageText(HTMLParser):
    """The text of a page: a line for each block, cells of a row joined by bars."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self.is_hidden = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.is_hidden |= tag in {"style", "script"}
        label = dict(attrs).get("aria-label")
        if tag in {"td", "th"}:
            self.lines[-1] += " | " if self.lines[-1] else ""
        elif tag == "small":
            self.lines[-1] += " "
        elif tag not in INLINE:
            self.lines.append(f"[{label}]" if label else "")
            if label:
                self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_hidden &= tag not in {"style", "script"}
        if tag not in INLINE | {"td", "th"}:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self.is_hidden:
            self.lines[-1] += data


def page_text(page: str) -> str:
    """Return what a reader of a page sees or hears, line by line."""
    parser = PageText()
    parser.feed(page)
    parser.close()
    lines = (" ".join(line.split()) for line in parser.lines)
    return "\n".join(line for line in lines if line) + "\n"


def texts_of(name: str) -> dict[str, str]:
    """Return the texts of an audit by the endings of their files."""
    audit = json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))
    return {".html.txt": page_text(audit_html(audit)), ".txt": audit_text(audit) + "\n"}


@pytest.mark.parametrize("ending", [".html.txt", ".txt"])
@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_a_report_is_the_golden_one(name: str, ending: str) -> None:
    expected = (PAGES / f"{name}{ending}").read_text(encoding="utf-8")
    assert texts_of(name)[ending].splitlines() == expected.splitlines()


def write(demo: Path | None) -> None:
    """Write the golden texts again, of the audits of a new demo if its folder is given."""
    for name in NAMES:
        if demo is not None:
            (PAGES / f"{name}.json").write_bytes((demo / f"{name}.json").read_bytes())
        for ending, text in texts_of(name).items():
            (PAGES / f"{name}{ending}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if "--write" not in sys.argv[1:2]:
        sys.exit(__doc__)
    write(Path(sys.argv[2]) if sys.argv[2:] else None)
