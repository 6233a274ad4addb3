"""The page of a report and the pieces it is put together from; text outside figures is escaped here alone."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.figures._style import printable
from evenhand.figures._svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = str | tuple[str, str]
"""A value, or a value and its band; plain text, escaped where it is written."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5c6269; --line: #d9dce0; --page: #fff; --card: #f4f6f8;
  --accent: #0b5cad; --warn: #9a4a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #a3abb3; --line: #3a4047; --page: #16191c;
  --card: #20252a; --accent: #7db8f5; --warn: #f0ab62; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .25rem; }
p, ul { margin: .5rem 0; max-width: 48rem; overflow-wrap: anywhere; }
ul { padding-left: 1.25rem; }
li { margin: .3rem 0; }
.facts, footer, small { color: var(--soft); }
.verdict { background: var(--card); border-left: .3rem solid var(--accent); border-radius: .3rem; margin: 1.25rem 0;
  padding: .75rem 1.25rem; }
.verdict p, .verdict ul { max-width: 54rem; }
.verdict h2 { border: 0; margin: 0; padding: 0; font-size: 1rem; color: var(--soft); }
.verdict .lead { font-size: 1.2rem; font-weight: 600; line-height: 1.4; }
.warn { border-left: .3rem solid var(--warn); padding-left: 1rem; }
.box { overflow-x: auto; margin: .75rem 0 1rem; }
table { border-collapse: collapse; min-width: min(100%, 40rem); font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 0; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; border-bottom-width: 2px; }
tbody tr:last-child > * { border-bottom: 0; }
tbody th { font-weight: 500; min-width: min(9rem, 36vw); max-width: 22rem; overflow-wrap: anywhere; }
td { min-width: 8rem; max-width: 26rem; }
.n { min-width: 4rem; text-align: right; white-space: nowrap; }
thead .n { white-space: normal; }
td small { display: block; font-size: .8rem; }
.dim th, .dim td { color: var(--soft); }
figure { margin: 1rem 0; background: #fff; border: 1px solid var(--line); border-radius: .3rem; padding: .75rem; }
figure svg { display: block; width: 100%; min-width: 30rem; max-width: 46rem; height: auto; margin: 0 auto; }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .85rem; }
@media print { main { max-width: none; padding: 0; } body { font-size: 10pt; } .box { overflow: visible; }
  tr, figure, .verdict { break-inside: avoid; } h2, h3 { break-after: avoid; } figure svg { min-width: 0; } }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page(title: str, body: str) -> str:
    """Write the whole page around its body, which is HTML already."""
    return PAGE.format(title=_escape(title), style=STYLE, body=body)


def heading(text: str) -> str:
    """Write the heading of the whole page."""
    return f"<h1>{_escape(text)}</h1>"


def section(title: str, *parts: str) -> str:
    """Put parts, which are HTML already, under a title; empty ones are left out."""
    return "\n".join(["<section>", f"<h2>{_escape(title)}</h2>", *(part for part in parts if part), "</section>"])


def paragraph(text: str, kind: str = "") -> str:
    return f"<p{kind and f' class={chr(34)}{kind}{chr(34)}'}>{_escape(text)}</p>"


def bullets(sentences: Iterable[Any]) -> str:
    """Write sentences as a list; nothing if there are none."""
    items = "".join(f"<li>{_escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def table(label: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], dim: Sequence[int] = ()) -> str:
    """Write a table; a title that begins with # heads a column of numbers."""
    kinds = [' class="n"' if title.startswith("#") else "" for title in header]
    titles = "".join(
        f'<th scope="col"{k}>{_escape(t.removeprefix("#"))}</th>' for t, k in zip(header, kinds, strict=True)
    )
    lines = []
    for i, row in enumerate(rows):
        first = f'<th scope="row"{kinds[0]}>{_escape(row[0])}</th>'
        cells = "".join(f"<td{k}>{_cell(c)}</td>" for c, k in zip(row[1:], kinds[1:], strict=True))
        lines.append(f"<tr{' class=' + chr(34) + 'dim' + chr(34) if i in dim else ''}>{first}{cells}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="box" role="region" tabindex="0" aria-label="{_escape(label)}"><table>\n'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _escape(cell)
    value, below = cell
    return _escape(value) + (f"<small>{_escape(below)}</small>" if below != "-" else "")


def _escape(text: Any) -> str:
    return html.escape(printable(text))


def figure(draw: Callable[[], Axes], alt: str, prefix: str) -> str:
    """Draw a figure into the page; `prefix` keeps its ids apart from those of other figures."""
    return f'<figure class="box">{inline_svg(draw, alt, prefix)}</figure>'
