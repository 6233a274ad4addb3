"""Pages of reports and their parts: sections, paragraphs, lists, tables.

Text outside figures is escaped here alone.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evenhand.figures import inline_svg, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Value:
    """A cell of a table: text, a second line, what it is sorted by, and a drawing as HTML.

    A column that holds numbers is sorted by `order`, where None stands for a value that is not
    known.
    """

    text: str
    below: str = "-"
    order: float | None = None
    drawing: str = ""


Cell = str | tuple[str, str] | Value
"""A value, or a value and its band; plain text, escaped where it is written."""

LONG = 14
"""Most rows of a table that is shown whole; longer ones scroll in their box."""

NAME_LENGTH = 300
"""Most characters of a name from data: a page has to stay small whatever the columns hold."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{skip}<main id="main">
{body}
</main>
{script}</body>
</html>
"""


@cache
def _own_file(name: str) -> str:
    """Read a file of this folder that goes into every page."""
    return files("evenhand.report").joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: str, *, is_live: bool = False) -> str:
    """Write a page around its body, which is HTML; a live page sorts, filters and shows values."""
    # were a script to get in through data, the policy would not let it run or load anything
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    script = ""
    skip = ""
    if is_live:
        code = _own_file("page.js")
        # the policy names our script by its hash, so that no other inline script is allowed
        seal = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{seal}'"
        script = f"<script>{code}</script>\n"
        skip = '<a class="skip" href="#main">Skip to the report</a>\n'
    style = _own_file("page.css")
    return PAGE.format(
        policy=policy, title=escape(title), style=style, skip=skip, body=body, script=script
    )


def heading(text: str) -> str:
    """Write the heading of the whole page."""
    return f"<h1>{escape(text)}</h1>"


class Section(str):
    """A section as HTML, with its title and the target of links to it."""

    __slots__ = ("heading", "key")
    heading: str
    key: str

    def __new__(cls, text: str, title: str, key: str) -> Section:
        self = super().__new__(cls, text)
        self.heading = title
        self.key = key
        return self


def section(title: str, *parts: str, key: str = "") -> Section:
    """Put parts, which are HTML, under a title; links lead to `key`. Empty parts are left out."""
    opening = f'<section id="{key}">' if key else "<section>"
    written = [
        opening,
        f"<h2>{escape(title)}</h2>",
        *(part for part in parts if part),
        "</section>",
    ]
    return Section("\n".join(written), title, key)


def details(summary: str, *parts: str) -> str:
    """Fold parts, which are HTML, under a summary."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def paragraph(text: str, kind: str = "") -> str:
    """Write a paragraph, escaped."""
    return f"<p{kind and f' class={chr(34)}{kind}{chr(34)}'}>{escape(text)}</p>"


def bullets(sentences: Iterable[Any]) -> str:
    """Write sentences as a list; nothing if there are none."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def facts(values: Mapping[str, Any]) -> str:
    """Write names and values as a list of terms; values of None are left out."""
    lines = (
        f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in values.items() if v is not None
    )
    return f"<dl>{''.join(lines)}</dl>"


def table(
    label: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    dim: Sequence[int] = (),
    *,
    search: str = "",
) -> str:
    """Write a table; a title that begins with # heads a column of numbers.

    With `search`, the words beside the field that finds rows, it can be sorted and searched where a
    script runs.
    """
    kinds = [' class="n"' if title.startswith("#") else "" for title in header]
    titles = "".join(
        f'<th scope="col"{k}>{escape(t.removeprefix("#"))}</th>'
        for t, k in zip(header, kinds, strict=True)
    )
    body = "\n".join(_row(row, kinds, is_dim=i in dim) for i, row in enumerate(rows))
    kind = "box long" if len(rows) > LONG else "box"
    opening = '<table class="sortable">' if search else "<table>"
    # a box that scrolls by itself has to be reachable by the keyboard
    return (
        (_search(label, search) if search else "")
        + f'<div class="{kind}" role="region" tabindex="0" aria-label="{escape(label)}">{opening}\n'
        + f"<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _search(label: str, words: str) -> str:
    """Write a search field, hidden until the script shows it: without one it would do nothing."""
    key = "find-" + "-".join(label.lower().split())
    return (
        f'<div class="search" hidden><label for="{key}">{escape(words)}</label>'
        f'<input id="{key}" type="search" autocomplete="off" spellcheck="false">'
        '<p role="status" aria-live="polite"></p></div>\n'
    )


def _row(row: Sequence[Cell], kinds: Sequence[str], *, is_dim: bool) -> str:
    # the first cell heads its row, so that screen readers name it with each value
    first = f'<th scope="row"{kinds[0]}{_order(row[0])}>{_cell(row[0])}</th>'
    cells = "".join(
        f"<td{_kind(c, k)}{_order(c)}>{_cell(c)}</td>"
        for c, k in zip(row[1:], kinds[1:], strict=True)
    )
    return f"<tr{' class=' + chr(34) + 'dim' + chr(34) if is_dim else ''}>{first}{cells}</tr>"


def _kind(cell: Cell, kind: str) -> str:
    return ' class="drawn"' if isinstance(cell, Value) and cell.drawing else kind


def _order(cell: Cell) -> str:
    if not isinstance(cell, Value):
        return ""
    # six digits sort as the full value would, nearly always, in half the bytes
    return (
        ' data-v=""'
        if cell.order is None or not math.isfinite(cell.order)
        else f' data-v="{cell.order:.6g}"'
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(short(cell, NAME_LENGTH))
    value = cell if isinstance(cell, Value) else Value(*cell)
    below = f"<small>{escape(value.below)}</small>" if value.below != "-" else ""
    return escape(short(value.text, NAME_LENGTH)) + value.drawing + below


def short(text: Any, length: int) -> str:
    """Cut a text that is too long in its middle: names of groups often differ at their ends."""
    line = printable(text)
    end = length // 3
    return line if len(line) <= length else f"{line[: length - end - 1]}…{line[-end:]}"


def escape(text: Any) -> str:
    """Escape text for HTML, control characters as well."""
    return html.escape(printable(text))


def figure(draw: Callable[[], Axes], alt: str, prefix: str) -> str:
    """Draw a figure into the page; `prefix` keeps its ids apart from those of other figures."""
    return f'<figure class="box">{inline_svg(draw, alt, prefix)}</figure>'
