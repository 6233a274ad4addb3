"""An audit as one page of HTML: no script, nothing loaded from outside, made from the plain values of the audit."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.figures import inline_svg, plot_groups, plot_worst_group, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["audit_html"]

Values = Mapping[str, Any]
Cell = str | tuple[str, str]
"""A value, or a value and its band; plain text, escaped where it is written."""

SURE = 0.05
"""Adjusted p-value under which a group is surely off."""

MASS = 0.2
SCANNED, NAMED, DRAWN, TOLD = 20, 200, 24, 3
"""Most rows shown of the scan and of the named groups, most groups drawn, and most told of in words."""

SCALE = (
    "Off by 0 points is perfect, by 50 the worst: stated against true chances, averaged over all levels. Surely: of "
    "scanned groups at a risk of 5% over all of them at once; of named groups by bounds that hold at once, where "
    "there is a certificate, else by each band; of learned groups by each one's lower bound."
)

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


def audit_html(audit: Values) -> str:
    """Render an audit as one HTML page that opens offline.

    Of a deterministic model the groups lead, as nothing can be proven for every group; of a randomized one the proof.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or what `json.load` makes of an audit written as JSON; its layout is in
        docs/audit-schema.rst. Values that are None, and lists that are empty, are left out or shown as "-".

    Returns
    -------
    str
        The page: tables, figures as SVG, no script, no link. Text from data is escaped.

    Examples
    --------
    >>> empty = dict.fromkeys(["scores", "groups", "scan", "learned", "worst_groups", "notes"], [])
    >>> head = {"name": "a <b> model", "n_samples": 100, "n_draws": 1, "is_randomized": False}
    >>> page = audit_html(head | empty | {"rounding_step": None, "certificate": None})
    >>> "<h1>Audit of a &lt;b&gt; model</h1>" in page
    True
    """
    found = [_named(audit), _scanned(audit), _learned(audit)]
    rest = [_scores(audit), _proof(audit), _limits(audit), _notes(audit)]
    if _proven(audit) is not None:
        sections = [rest[1], _oracle(audit), *found, rest[0], *rest[2:]]
    else:
        sections = [*found, *rest, _oracle(audit)]
    made = _paragraph("Made by evenhand. The same values, with all digits, are in the audit as JSON.")
    footer = f"<footer>{made}</footer>"
    body = "\n".join(part for part in (_head(audit), _verdict(audit), *sections, footer) if part)
    return PAGE.format(title=_escape(f"Audit of {audit['name']}"), style=STYLE, body=body)


# what was audited, and what it says


def _head(audit: Values) -> str:
    n, m = audit["n_samples"], audit["n_draws"]
    kind = f"randomized forecasts, {_count(m, 'draw')} per row" if audit["is_randomized"] else "deterministic forecasts"
    facts = [_count(n, "row"), kind]
    if audit.get("rounding_step") is not None:
        facts.append(f"outcomes rounded to {audit['rounding_step']:g}")
    return f"<h1>{_escape('Audit of ' + str(audit['name']))}</h1>\n{_paragraph(' · '.join(facts), 'facts')}"


def _verdict(audit: Values) -> str:
    proven = _proven(audit)
    sure = [*_sure_named(audit), *_sure_scanned(audit), *_sure_learned(audit)]
    lead = _headline(audit, bool(sure)) if proven is None else _proof_sentence(audit, proven)
    sentences = list(_average_sentences(audit))
    if proven is not None:
        sentences.append("Even so, some groups are surely off." if sure else _headline(audit, False))
    sentences += sure
    if proven is None:
        sentences.append(_no_proof_sentence(audit))
    return (
        f'<div class="verdict"><h2>What this audit says</h2>{_paragraph(lead, "lead")}{_list(sentences)}'
        f"{_paragraph(SCALE, 'facts')}</div>"
    )


def _headline(audit: Values, is_sure: bool) -> str:
    if is_sure:
        return "Some groups are surely off."
    if audit["groups"] and (audit["groups"][0]["error_low"] or 0) > 0:
        return "The forecasts are surely off over everybody; no group in particular is surely off."
    if len(audit["groups"]) < 2 and not audit["scan"] and not audit["learned"]:
        return "No groups were looked at: name some, or give features."
    return "No group is surely off among those looked at. That does not prove that each of them is well calibrated."


def _proof_sentence(audit: Values, row: Values) -> str:
    confidence, mass = _percent(audit["certificate"]["confidence"]), _percent(row["mass"])
    if row["group_error"] >= 0.4995:
        return f"The rows are too few to prove anything for every group of at least {mass} of people."
    # bounds are rounded to the safe side
    most = math.ceil(100 * row["group_error"] - 1e-9)
    text = (
        f"With {confidence} confidence: for every group of at least {mass} of people, stated chances are off by at "
        f"most {most} percentage points averaged over all probability levels"
    )
    if _is_known(row["coverage_80_low"]) and _is_known(row["coverage_80_high"]):
        low, high = math.floor(100 * row["coverage_80_low"] + 1e-9), math.ceil(100 * row["coverage_80_high"] - 1e-9)
        text += f"; with the same confidence the 80% interval holds {low}% to {high}% of outcomes there"
    return text + "."


def _no_proof_sentence(audit: Values) -> str:
    if not audit["is_randomized"]:
        return (
            "What cannot be shown: with one forecast per person no data can prove calibration for groups that were not "
            "named beforehand, however good the forecasts are. Groups that nobody looked at may be off."
        )
    if audit["n_draws"] == 1:
        return "Only one draw per row is known, which proves nothing for groups not named: audit several draws per row."
    return "Nothing is proven here for groups that were not named; the notes say why."


def _average_sentences(audit: Values) -> Iterable[str]:
    for row in audit["groups"][:1]:
        text = f"Over everybody, stated chances are off by {_points(row['error'])} percentage points"
        text += f" (95% band {_range(_points, row['error_low'], row['error_high'])})"
        yield text + f"; a stated 80% interval holds {_percent(row['coverage_80'], 1)} of outcomes."


def _sure_named(audit: Values) -> list[str]:
    proof = (audit["certificate"] or {}).get("groups", [])
    judged = {row["group"]: (row["low"] or 0) > 0 for row in proof}
    for row in audit["scan"]:
        judged[row["group"]] = judged.get(row["group"], False) or _is_sure(row)
    off = [
        row
        for row in audit["groups"][1:]
        # a band of a group alone counts only where no judgement of all groups at once is known
        if not row["too_small"] and judged.get(row["group"], (row["error_low"] or 0) > 0)
    ]
    off.sort(key=lambda row: -(row["error"] or 0))
    told = [f"Named group {_finding(row, row['group'], _lean(row))}." for row in off[:TOLD]]
    return told + ([f"{_count(len(off) - TOLD, 'more named group')} surely off: see the table."] if off[TOLD:] else [])


def _sure_scanned(audit: Values) -> list[str]:
    off = [row for row in audit["scan"] if _is_sure(row)]
    named = {row["group"] for row in audit["groups"]}
    # the same rows may go by several names: they are told of once, and named groups were told of before
    others: dict[Any, Values] = {}
    for row in off:
        if row["group"] not in named:
            others.setdefault((row["n"], row["error"]), row)
    told = [
        f"Group {_finding(row, row['group'], row['direction'])} (adjusted p {_p_value(row['p_adjusted'], '= ')})."
        for row in list(others.values())[:TOLD]
    ]
    more = f"In all {len(off):,} of {len(audit['scan']):,} scanned groups are surely off; many overlap."
    return told + ([more] if len(off) > len(told) else [])


def _sure_learned(audit: Values) -> list[str]:
    off = [row for row in audit["learned"] if (row["low"] or 0) > 0]
    if not off:
        return []
    row = max(off, key=lambda row: row["low"])
    words = row["description"] or ", ".join(map(str, row["features"] or ())) or "no short rule"
    where = f"{_percent(row['mass'])} of people that features define ({words})"
    return [f"Of {_finding(row, where, row['direction'])}, surely by {_points(row['low'])} or more."]


def _finding(row: Values, name: Any, direction: str | None) -> str:
    """Say which group is off, in which direction and by how much."""
    how = "in no one direction" if direction in {None, "mixed", "as forecast"} else direction
    text = f"{name} ({_count(row['n'], 'row')}): {how}"
    bias = row["bias"]
    if _is_known(bias) and direction in {LOWER, HIGHER} and (bias < 0) == (direction == LOWER):
        text += f", by {_in_words(abs(bias))} units of y on average"
    return text + f"; off by {_points(row['error'])} points"


LOWER, HIGHER = "outcomes lower than forecast", "outcomes higher than forecast"


def _lean(row: Values) -> str:
    """Direction of a named group's error, from its mean PIT and coverage."""
    if row["too_small"]:
        return "too few rows to tell"
    error, mean = row["error"] or 0.0, row["mean_pit"]
    # a mean PIT away from 1/2 is an error of at least that much: is it most of the error
    if _is_known(mean) and abs(mean - 0.5) >= max(error / 2, 1e-9):
        return LOWER if mean < 0.5 else HIGHER
    if _is_known(row["coverage_80_high"]) and row["coverage_80_high"] < 0.8:
        return "intervals too narrow"
    if _is_known(row["coverage_80_low"]) and row["coverage_80_low"] > 0.8:
        return "intervals too wide"
    return "mixed"


# the tables


def _named(audit: Values) -> str:
    rows = [*audit["groups"][:1], *sorted(audit["groups"][1:], key=lambda row: -(row["error"] or 0))]
    if not rows:
        return ""
    header = [
        "group",
        "#rows",
        "#off by (points)",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#90% interval holds",
    ]
    cells: list[list[Cell]] = [
        [
            str(row["group"]),
            _whole(row["n"]),
            (_points(row["error"]), _range(_points, row["error_low"], row["error_high"])),
            _lean(row) if row["too_small"] or (row["error_low"] or 0) > 0 else "not surely off",
            (_number(row["bias"]), _range(_number, row["bias_low"], row["bias_high"])),
            *(
                (_percent(row[key], 1), _range(_tenth_percent, row[f"{key}_low"], row[f"{key}_high"]))
                for key in ("coverage_80", "coverage_90")
            ),
        ]
        for row in rows[: NAMED + 1]
    ]
    text = (
        "Estimates with 95% bands, each group looked at by itself. Outcome minus forecast is in units of y: below 0, "
        "outcomes are lower than forecast."
    )
    if rows[NAMED + 1 :]:
        text += f" Shown are the {NAMED} of {_whole(len(rows) - 1)} groups that are furthest off."
    dim = [i for i, row in enumerate(rows) if row["too_small"]]
    figure = ""
    if len(rows) > 1:
        alt = "Error of each named group with its 95% band, in percentage points; the numbers are in the table."
        figure = _figure(lambda: plot_groups(rows[: DRAWN + 1]), alt, "named")
    return _section("Named groups", _paragraph(text), figure, _table("Named groups", header, cells, dim))


def _scanned(audit: Values) -> str:
    rows = audit["scan"]
    if not rows:
        return _section(
            "Groups by features", _paragraph("No groups were scanned: that takes features (see also the notes).")
        )
    off = sum(_is_sure(row) for row in rows)
    text = (
        f"{_count(len(rows), 'group')} looked at: values and halves of features, and their intersections two by two. "
        f"{off:,} of them {'has' if off == 1 else 'have'} an adjusted p-value below {SURE:g}; it holds for all at once."
    )
    if rows[SCANNED:]:
        text += f" Shown are the {SCANNED} surest."
    header = [
        "group",
        "#rows",
        "#off by (points)",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#adjusted p",
    ]
    cells: list[list[Cell]] = [
        [
            str(row["group"]),
            _whole(row["n"]),
            _points(row["error"]),
            row["direction"] or "-",
            _number(row["bias"]),
            _percent(row["coverage_80"], 1),
            _p_value(row["p_adjusted"]),
        ]
        for row in rows[:SCANNED]
    ]
    dim = [i for i, row in enumerate(rows[:SCANNED]) if not _is_sure(row)]
    return _section("Groups by features", _paragraph(text), _table("Groups by features", header, cells, dim))


def _learned(audit: Values) -> str:
    rows = audit["learned"]
    if not rows:
        return ""
    text = (
        "For each share of people the worst group that features can define, learned on some rows and judged on others. "
        "The error is estimated from below; each lower bound holds by itself."
    )
    header = [
        "share of people",
        "#rows",
        "#off by (points)",
        "#at least",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#p",
        "in words",
    ]
    cells: list[list[Cell]] = [
        [
            _percent(row["mass"]),
            _whole(row["n"]),
            _points(row["error"]),
            _points(row["low"]),
            (row["direction"] or "-") if (row["low"] or 0) > 0 else "not surely off",
            _number(row["bias"]),
            _percent(row["coverage_80"], 1),
            _p_value(row["p_value"]),
            str(row["description"] or ("by " + ", ".join(map(str, row["features"])) if row["features"] else "-")),
        ]
        for row in rows
    ]
    return _section("Worst groups learned from features", _paragraph(text), _table("Learned groups", header, cells))


def _scores(audit: Values) -> str:
    rows = audit["scores"]
    if not rows:
        return ""
    text = "Means over rows and draws with 95% bands. Smaller log scores, CRPS, deviations and widths are sharper."
    cells: list[list[Cell]] = []
    for row in rows:
        show, unit = {"share": (_tenth_percent, ""), "probability": (_points, "points")}.get(
            row["unit"], (_number, row["unit"])
        )
        cells.append(
            [str(row["measure"]), show(row["value"]), _range(show, row["low"], row["high"]), str(unit or "of outcomes")]
        )
    return _section("Scores", _paragraph(text), _table("Scores", ["measure", "#value", "#95% band", "unit"], cells))


def _proof(audit: Values) -> str:
    proof = audit["certificate"]
    if proof is None:
        return _section("What is proven", _paragraph("There is no certificate; the notes say why."))
    draws = _count(proof["n_draws"], "draw") if audit["is_randomized"] else "one forecast"
    parts = [
        _paragraph(
            f"Each statement holds with {_percent(proof['confidence'])} confidence at any number of rows, from "
            f"{_count(proof['n_samples'], 'person', 'people')} with {draws} each "
            f"(method: {proof['method']}). Over everybody, stated chances are off by at most "
            f"{_points(proof['average_error'])} points."
        )
    ]
    if _proven(audit) is not None:
        header = [
            "every group of at least",
            "#off by at most (points)",
            "#by the paper's chain",
            "#80% interval holds at least",
            "#at most",
        ]
        keys = ("coverage_80_low", "coverage_80_high")
        cells: list[list[Cell]] = [
            [
                f"{_percent(row['mass'])} of people",
                _points(row["group_error"]),
                _points(row["chain"]),
                *(_percent(row[key], 1) for key in keys),
            ]
            for row in proof["every_group"]
        ]
        parts += ["<h3>For every group</h3>", _table("Bounds for every group", header, cells)]
    if proof["groups"]:
        header = ["group", "#rows", "#measured (points)", "#at least", "#at most"]
        cells = [
            [str(row["group"]), _whole(row["n"]), *(_points(row[key]) for key in ("error", "low", "high"))]
            for row in proof["groups"][:NAMED]
        ]
        parts += ["<h3>For named groups, all at once</h3>", _table("Bounds for named groups", header, cells)]
    answers: list[list[Cell]] = [
        [f"{row['question']}?", "yes" if row["answered"] else "no", str(row["why"])] for row in proof["questions"]
    ]
    if answers:
        parts += ["<h3>What these rows can answer</h3>", _table("Questions", ["question", "answered", "why"], answers)]
    return _section("What is proven", *parts)


def _limits(audit: Values) -> str:
    proof = audit["certificate"] or {}
    parts = [
        f"<h3>{title}</h3>{_list(proof[key])}"
        for title, key in (("Assumed", "assumptions"), ("Not covered", "not_covered"))
        if proof.get(key)
    ]
    return _section("What the proof rests on", *parts) if parts else ""


def _notes(audit: Values) -> str:
    return _section("Notes", _list(audit["notes"])) if audit["notes"] else ""


def _oracle(audit: Values) -> str:
    rows, is_proven = audit["worst_groups"], _proven(audit) is not None
    if not rows:
        return ""
    text = (
        "For each share of people, the rows whose forecasts look worst once the outcomes are seen. Beside it, what the "
        "same search finds in calibrated forecasts of the same kind: mean, and 5% to 95%."
    )
    warning = ""
    if audit["n_draws"] == 1:
        warning = _paragraph(
            "This measures what can be proven, not harm: with one forecast per person even the true distribution "
            "scores about (1 - share) / 2 here, 40 points for the worst fifth.",
            "warn",
        )
    above = [_percent(row["mass"]) for row in rows if _is_known(row["null_high"]) and row["error"] > row["null_high"]]
    where = f"Above what calibrated forecasts show at shares of {', '.join(above)}." if above else ""
    if not above and any(_is_known(row["null_high"]) for row in rows):
        where = "At no share is it above what calibrated forecasts show."
    # without a proof the bounds only say that nothing is known
    drawn = [dict(row) if is_proven else dict(row) | {"certified": None} for row in rows]
    alt = (
        "Error of the worst group against its share of the people, in percentage points; the numbers are in the table."
    )
    figure = _figure(lambda: plot_worst_group(drawn, learned=audit["learned"]), alt, "worst")
    header = [
        "share of people",
        "#rows",
        "#off by (points)",
        "#if calibrated",
        *(["#certified, at most"] if is_proven else []),
    ]
    cells: list[list[Cell]] = [
        [
            _percent(row["mass"]),
            _whole(row["n"]),
            _points(row["error"]),
            (_points(row["null_mean"]), _range(_points, row["null_low"], row["null_high"])),
            *([_points(row["certified"])] if is_proven else []),
        ]
        for row in rows
    ]
    title = "Worst groups picked in hindsight"
    table = _table(title, header, cells)
    title = title if is_proven else f"Appendix: {title[0].lower()}{title[1:]}"
    return _section(title, warning, _paragraph(text), _paragraph(where) if where else "", figure, table)


def _proven(audit: Values) -> Values | None:
    """Bounds for every group of a fifth of the people, or of the share they were made for; None if there are none."""
    proof = audit["certificate"]
    if not audit["is_randomized"] or audit["n_draws"] == 1 or proof is None:
        return None
    rows: list[Values] = [row for row in proof["every_group"] if _is_known(row["group_error"])]
    return min(rows, key=lambda row: abs(row["mass"] - MASS), default=None)


def _is_sure(row: Values) -> bool:
    return _is_known(row["p_adjusted"]) and bool(row["p_adjusted"] < SURE)


# pieces of a page; text is escaped here and nowhere else


def _section(title: str, *parts: str) -> str:
    return "\n".join(["<section>", f"<h2>{_escape(title)}</h2>", *(part for part in parts if part), "</section>"])


def _paragraph(text: str, kind: str = "") -> str:
    return f"<p{kind and f' class={chr(34)}{kind}{chr(34)}'}>{_escape(text)}</p>"


def _list(sentences: Iterable[Any]) -> str:
    items = "".join(f"<li>{_escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _table(label: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], dim: Sequence[int] = ()) -> str:
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
    value, band = cell
    return _escape(value) + (f"<small>{_escape(band)}</small>" if band != "-" else "")


def _escape(text: Any) -> str:
    return html.escape(printable(text))


def _figure(draw: Callable[[], Axes], alt: str, prefix: str) -> str:
    return f'<figure class="box">{inline_svg(draw, alt, prefix)}</figure>'


# numbers as text; what is not known is a dash


def _is_known(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _points(share: float | None) -> str:
    return f"{100 * share + 0.0:.1f}" if share is not None and math.isfinite(share) else "-"


def _percent(share: float | None, decimals: int | None = None) -> str:
    if share is None or not math.isfinite(share):
        return "-"
    return f"{100 * share:.4g}%" if decimals is None else f"{100 * share:.{decimals}f}%"


def _tenth_percent(share: float | None) -> str:
    return _percent(share, 1)


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2g}" if 0 < abs(value) < 0.001 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def _in_words(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"


def _range(show: Callable[[float | None], str], low: float | None, high: float | None) -> str:
    return f"{show(low)} to {show(high)}" if _is_known(low) and _is_known(high) else "-"


def _p_value(value: float | None, equals: str = "") -> str:
    if value is None or not math.isfinite(value):
        return equals + "-"
    return ("< " if equals else "<") + "0.0001" if value < 1e-4 else f"{equals}{value:.4f}"


def _whole(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"


def _count(n: int, noun: str, plural: str = "") -> str:
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
