"""Sliders for the price of a guarantee, on a page that needs no server and no network.

The directive embeds a table that `tools/make_explore_table.py` computes. Without JavaScript a part
of it is shown as an ordinary table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

STATIC_MASS = 0.2
STATIC_ERRORS = (0.2, 0.25, 0.3, 0.35)
STATIC_ROWS = (500, 1000, 2000, 10_000)
"""What is shown without JavaScript."""

START = {"mass": STATIC_MASS, "rows": 2000, "error": 0.25}
"""Where the sliders begin."""

CONTROLS = (
    ("mass", "Smallest group", "masses"),
    ("rows", "Rows that certify, one per person", "rows"),
    ("error", "Largest error of a group", "errors"),
)

ANSWER = """
<div class="answer">
<p class="sentence" role="status"></p>
<div class="bars" aria-hidden="true">
<p>Randomized 80% intervals</p>
<div class="lane"><span class="band drawn"></span><span class="level" style="left:80%"></span></div>
<p class="wider-name"></p>
<div class="lane"><span class="band floor-only"></span></div>
<p class="scale"><span>0%</span><span>coverage in every such group</span><span>100%</span></p>
</div>
<dl>
<dt>Floor of coverage</dt><dd class="floor"></dd>
<dt>Ceiling of coverage</dt><dd class="ceiling"></dd>
<dt>80% intervals</dt><dd class="wider"></dd>
<dt>Price</dt><dd class="price"></dd>
<dt><code>alpha</code></dt><dd class="alpha"></dd>
</dl>
<p class="without"></p>
<p>The same by the command:</p>
<pre class="command" tabindex="0"></pre>
</div>
"""


class Explore(SphinxDirective):
    """The sliders, their table as JSON, and a part of it as a table of the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        file, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(file)
        text = Path(path).read_text(encoding="utf-8").strip()
        table = json.loads(text)
        data = f'<script type="application/json" id="explore-data">{text}</script>'
        # hidden until a script shows it
        form = f'<form class="explore" hidden>{_controls(table)}{ANSWER}</form>'
        return [nodes.raw("", part, format="html") for part in (form, data, static_table(table))]


def _controls(table: Mapping[str, Any]) -> str:
    return "".join(
        f'<p class="control"><label for="explore-{name}">{label}</label>'
        f'<output for="explore-{name}"></output>'
        f'<input type="range" id="explore-{name}" min="0" max="{len(table[key]) - 1}" step="1"'
        f' value="{table[key].index(START[name])}"></p>'
        for name, label, key in CONTROLS
    )


def static_table(table: Mapping[str, Any]) -> str:
    """Return the table that is shown to every reader."""
    columns = (
        "largest error of a group",
        "rows",
        "floor of coverage",
        "ceiling of coverage",
        "80% intervals wider by",
        "price in nats",
    )
    caption = f"Every group of at least {100 * STATIC_MASS:g}% of people"
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "".join(_row(table, error, rows) for error in STATIC_ERRORS for rows in STATIC_ROWS)
    return (
        '<div class="explore-table" tabindex="0" role="region" aria-label="Table of guarantees">'
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(table: Mapping[str, Any], error: float, rows: int) -> str:
    by_error = table["certificates"][table["masses"].index(STATIC_MASS)]
    cell = by_error[table["errors"].index(error)][table["rows"].index(rows)]
    _, price, wider, floor, ceiling = cell
    values = (
        f"{100 * error:g} points",
        f"{rows:,}",
        f"{floor}%",
        f"{ceiling}%",
        f"{wider}%",
        f"{price:.2f}",
    )
    return "<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>"


def add_script(app: Sphinx, page: str, *_: Any) -> None:
    """Load the script on the page of the sliders alone."""
    if page == "plan":
        app.add_js_file("explore.js")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("explore", Explore)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True}
