"""Audits as text for a terminal: a table, then sentences in plain words."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table
    from rich.text import Text

    from evenhand.audits import Audit

WIDTH = 118


def audit_text(audit: Audit) -> str:
    """Render one audit: what was audited, the scores, the groups, the oracle curve and what they say."""
    kind = f"randomized, {_count(audit.n_draws, 'draw')} per person" if audit.is_randomized else "deterministic"
    head = _wrapped(f"Audit of {audit.name} ({kind}) on {_count(audit.n_samples, 'row')}")
    measures = [
        (row["measure"], _number(row["value"]), f"{_number(row['low'])} to {_number(row['high'])}", row["unit"])
        for row in audit.scores.to_dict("records")
    ]
    groups = [_group_row(row) for row in audit.groups.to_dict("records")]
    worst = audit.worst_groups.to_dict("records")
    parts = [
        head,
        _grid(("measure", "value", "95% band", "unit"), measures, right=(1, 2)),
        _grid(
            ("group", "rows", "error", "95% band", "outcomes are", "80% covered", "90% covered"),
            groups,
            right=(1, 2, 3, 5, 6),
        ),
        _grid(
            ("oracle worst group of", *(f"{row['mass']:.0%}" for row in worst)),
            [("error", *(_number(row["error"]) for row in worst))],
            right=tuple(range(1, len(worst) + 1)),
        ),
        "\n".join(_wrapped(sentence) for sentence in _sentences(audit)),
    ]
    return "\n\n".join(parts)


def comparison_text(table: pd.DataFrame, names: tuple[str, str]) -> str:
    """Render two audits side by side with a sentence on each line."""
    rows = [
        (row["measure"], _number(row[names[0]]), _number(row[names[1]]), row["in_words"])
        for row in table.to_dict("records")
    ]
    return _grid(("measure", *names, "in plain words"), rows, right=(1, 2))


def difference_in_words(measure: str, first: float, second: float, names: tuple[str, str]) -> str:
    """Say in one sentence what the second forecaster changes in a measure."""
    # behind the comma stands the name of a group, which may hold any word
    kind = measure.partition(", ")[0]
    if kind == "log score":
        gap = second - first
        if abs(gap) < 0.005:
            return f"{names[1]} is as sharp as {names[0]}"
        return f"{names[1]} is {abs(gap):.2f} nats {'less sharp' if gap > 0 else 'sharper'}"
    if kind == "CRPS":
        return (
            f"its whole distribution is {_ratio(first, second, ('farther from', 'nearer to', 'far from'))} the outcome"
        )
    if kind == "mean std" or kind.endswith("interval width"):
        what = "interval" if "interval" in kind else "forecast"
        return f"a person's {what} is {_ratio(first, second, ('wider', 'narrower', 'wide'))}"
    before, now = _points(first), _points(second)
    change = "as before" if before == now else f"{'up' if second > first else 'down'} from {before}"
    if kind.endswith("coverage"):
        percent = "" if before == now else "%"
        return f"a stated {kind.partition(' ')[0]} interval holds {now}% of outcomes, {change}{percent}"
    return f"stated chances are off by {now} points, {change}"


def _group_row(row: dict[Any, Any]) -> tuple[str, ...]:
    error, band = _number(row["error"]), f"{_number(row['error_low'])} to {_number(row['error_high'])}"
    if row["too_small"]:
        return row["group"], str(row["n"]), error, band, "too few rows to tell", "", ""
    share = row["mean_pit"]
    lean = "as forecast" if abs(share - 0.5) < 0.02 else ("lower" if share < 0.5 else "higher")
    return row["group"], str(row["n"]), error, band, lean, f"{row['coverage_80']:.0%}", f"{row['coverage_90']:.0%}"


def _sentences(audit: Audit) -> Iterable[str]:
    everyone = audit.groups.iloc[0]
    yield (
        f"On average over everybody, stated chances are off by {_points(everyone['error'])} percentage points "
        "(0 is perfect, 50 the worst); a stated 80% interval holds "
        f"{_points(everyone['coverage_80'])}% of outcomes."
    )
    named = audit.groups.iloc[1:]
    named = named[~named["too_small"]]
    if len(named):
        worst = named.sort_values("error").iloc[-1]
        yield (
            f"Of the named groups, {worst['group']} ({worst['n']} rows) is furthest off: by "
            f"{_points(worst['error'])} points, "
            f"95% band {_points(worst['error_low'])} to {_points(worst['error_high'])}."
        )
    fifth = audit.worst_group_error(0.2)
    if audit.is_randomized and audit.n_draws > 1:
        yield (
            f"The worst fifth of these rows that was found in hindsight is off by {_points(fifth)} points; this is an "
            "estimate on these rows, not yet a certificate."
        )
    else:
        yield (
            f"The worst fifth in hindsight scores {_points(fifth)} points; with one forecast per person even the true "
            "distribution scores about 40, so this measures what can be proven, not harm."
        )


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]], right: tuple[int, ...] = ()) -> str:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        # names come from data: as Text, so that brackets are not read as markup
        table.add_row(*(Text(str(cell)) for cell in row))
    return _printed(table)


def _wrapped(sentence: str) -> str:
    from rich.text import Text

    return _printed(Text(sentence))


def _printed(shown: Table | Text) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None, force_terminal=False).print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def _ratio(first: float, second: float, words: tuple[str, str, str]) -> str:
    """Compare the second value with the first: "20% wider", "20% narrower", "2.1 times as wide", "about as wide"."""
    more, less, plain = words
    ratio = 1.0 if first == second else second / first if first else math.inf
    if ratio == math.inf:
        return f"beyond comparison {more}"
    if ratio >= 2:
        return f"{ratio:.1f} times as {plain}"
    if abs(ratio - 1) < 0.005:
        return f"about as {plain}"
    return f"{abs(ratio - 1):.0%} {more if ratio > 1 else less}"


def _number(value: float) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    if 0 < abs(value) < 0.001:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def _points(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
