"""Audits as text for a terminal: sentences, then tables."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand._escape import all_visible, visible
from evenhand._format import (
    at_least,
    at_most,
    band,
    bound,
    count,
    in_full,
    is_known,
    number,
    p_value,
    points,
    whole_percent,
)
from evenhand.report.findings import (
    NOT_OFF,
    by_size,
    in_words,
    is_learned_off,
    is_sure,
    n_scanned,
    with_notes,
)
from evenhand.report.measures import UNITS, Measure
from evenhand.report.notes import Note
from evenhand.report.numbers import without_nan
from evenhand.report.sentences import Values
from evenhand.report.verdict import (
    SCALE,
    SURELY,
    chance_sentence,
    forecast_kind,
    limits_of,
    proven_bounds,
    verdict,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table
    from rich.text import Text

WIDTH = 118
SHOWN = 10
NAMED = 40
"""Most rows shown of the scan and of the named groups."""

ONE_BY_ONE = "Each 95% band is for its group alone: of many groups some bands miss by chance."

LEAKS = " Groups marked * are possible leaks."

COVERAGES = ("coverage_80", "coverage_90")


def audit_text(audit: Values, notes: Sequence[Note] = ()) -> str:
    """Render one audit, `Audit.to_dict()` with `Audit.notes`, as text."""
    # names come from data and a terminal obeys control characters
    audit = with_notes(all_visible(without_nan(audit)), notes)
    lead, sentences = verdict(audit)
    found = [_named(audit), _scanned(audit), _learned(audit)]
    worst = [_worst(audit)]
    # of a deterministic model the groups lead, as nothing can be proven for every group; of a
    # randomized one the proof does
    parts = [
        _wrapped(
            f"Audit of {audit['name']}: {count(audit['n_samples'], 'row')}, {forecast_kind(audit)}"
        ),
        _wrapped(lead),
        _bullets(map(str, sentences)),
        _wrapped(f"{SCALE} {SURELY}"),
        _scores(audit),
        *(worst + found if audit["is_randomized"] else found + worst),
        _limits(audit),
        _bullets(f"Note: {note}" for note in audit["notes"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _scores(audit: Values) -> str:
    rows = [
        (row["measure"], number(row["value"]), band(number, row["low"], row["high"]), row["unit"])
        for row in audit["scores"]
    ]
    return _grid(("measure", "value", "95% band", "unit"), rows, right=(1, 2))


def _named(audit: Values) -> str:
    groups = [*audit["groups"][:1], *by_size(audit["groups"][1:])]
    # everybody is shown besides the most
    shown = groups[: NAMED + 1]
    some = f" ({NAMED} of {len(groups) - 1:,})" if len(groups) > len(shown) else ""
    header = (f"named group{some}", "rows", "error", "95% band", "outcome - forecast")
    coverages = ("80% covered", "90% covered")
    leaks = LEAKS if any(row.get("possible_leak") for row in shown) else ""
    grid = _grid((*header, *coverages), map(_group_row, shown), right=(1, 2, 3, 4, 5, 6))
    return f"{grid}\n{_wrapped(ONE_BY_ONE + leaks)}" if groups[1:] else grid


def _group_row(row: Values) -> tuple[str, ...]:
    if row["too_small"]:
        return row["group"], str(row["n"]), "-", "too few rows to tell", "-", "-", "-"
    covered = (
        f"{whole_percent(row[k])} ({band(whole_percent, row[f'{k}_low'], row[f'{k}_high'])})"
        for k in COVERAGES
    )
    lean = (
        f"{number(row['bias'])} ({band(number, row['bias_low'], row['bias_high'])})"
        if is_known(row["bias"])
        else "-"
    )
    errors = number(row["error"]), band(number, row["error_low"], row["error_high"])
    name = f"{row['group']} *" if row.get("possible_leak") else row["group"]
    return name, str(row["n"]), *errors, lean, *covered


def _scanned(audit: Values) -> str:
    if not audit["scan"]:
        return ""
    off = sum(map(is_sure, audit["scan"]))
    title = f"scanned group ({off:,} of {n_scanned(audit):,} surely off)"
    header = (title, "rows", "error", "how", "bias", "80% cov.", "p adj.")
    rows = [
        (
            row["group"],
            str(row["n"]),
            number(row["error"]),
            # a possible leak has no test, and its direction names it as a leak
            (row["direction"] if is_sure(row) or not is_known(row["p_adjusted"]) else NOT_OFF)
            or "-",
            number(row["bias"]),
            whole_percent(row["coverage_80"]),
            p_value(row["p_adjusted"]),
        )
        for row in audit["scan"][:SHOWN]
    ]
    return _grid(header, rows, right=(1, 2, 4, 5, 6))


def _learned(audit: Values) -> str:
    rows = [
        (
            in_full(row["mass"]),
            f"{row['n']} of {row['n_judged']}",
            number(row["error"]),
            # rounded down, so that the printed bound is valid
            bound(lambda low: at_least(low, 3, unit=1), row["low"]),
            (row["direction"] or "-") if is_learned_off(row) else NOT_OFF,
            number(row["bias"]),
            whole_percent(row["coverage_80"]),
            in_words(row),
        )
        for row in audit["learned"]
    ]
    header = ("learned worst group of", "rows", "error", "at least", "how", "bias", "80% cov.")
    return _grid((*header, "in words"), rows, right=(1, 2, 3, 5, 6)) if rows else ""


def _worst(audit: Values) -> str:
    records = audit["worst_groups"]
    lines = {
        "picked in hindsight": "error",
        "the same, calibrated": "null_mean",
        "its upper 5%": "null_high",
    }
    rows = [(label, *(number(record[key]) for record in records)) for label, key in lines.items()]
    if proven_bounds(audit) is not None:
        certified = (_upper_bound(record["certified"]) for record in records)
        rows.append(("certified for every group", *certified))
    header = ("worst group of", *(in_full(record["mass"]) for record in records))
    grid = _grid(header, rows, right=tuple(range(1, len(records) + 1)))
    chance = chance_sentence(records)
    # a perfect deterministic forecaster scores about (1 - mass) / 2 here (method.md, 6)
    if not audit["is_randomized"]:
        chance += " With one forecast per row this measures what can be proven, not harm."
    return f"{grid}\n{_wrapped(chance.strip())}" if chance else grid


def _limits(audit: Values) -> str:
    """Write what the proof does not cover, where there is one."""
    if proven_bounds(audit) is None:
        return ""
    return _wrapped(f"Not covered by the proof: {'; '.join(limits_of(audit, 'not_covered'))}.")


SIZES = {
    "CRPS": (
        "its whole distribution is",
        " the outcome",
        ("farther from", "nearer to", "far from"),
    ),
    "mean std": ("a person's forecast is", "", ("wider", "narrower", "wide")),
    "interval width": ("a person's interval is", "", ("wider", "narrower", "wide")),
}
"""Parts of sentences on measures in units of the outcome: before and after the ratio, its words."""

PLAIN_SIZE = ("it is", "", ("larger", "smaller", "large"))
"""The same for such a measure that has no sentence of its own."""


def _sharpness_in_words(gap: float, names: tuple[str, str]) -> str:
    # gaps that would be printed as 0.00
    if abs(gap) < 0.005:
        return f"{names[1]} is as sharp as {names[0]}"
    return f"{names[1]} is {abs(gap):.2f} nats {'less sharp' if gap > 0 else 'sharper'}"


def comparison_text(
    table: pd.DataFrame, measures: Sequence[Measure], names: tuple[str, str]
) -> str:
    """Render two audits side by side, with a sentence on each measure."""
    rows = [
        (row["measure"], *(_compared(measure, row[name]) for name in names), row["in_words"])
        for measure, row in zip(measures, table.to_dict("records"), strict=True)
    ]
    return _grid(
        ("measure", *map(visible, names), "in plain words"), all_visible(rows), right=(1, 2)
    )


def _compared(measure: Measure, value: float) -> str:
    return _upper_bound(value) if measure.what == "certified error" else number(value)


def difference_in_words(
    measure: Measure, first: float, second: float, names: tuple[str, str]
) -> str:
    """Return in one sentence what the second forecaster changes in a measure."""
    # a difference of two bounds is no bound of the difference, so both are named
    if measure.what == "certified error":
        return (
            f"proven for any such group: off by at most {at_most(second)} points; of {names[0]}"
            f" {at_most(first)}"
        )
    # log scores may be negative: their difference has a meaning, their ratio has none
    if measure.what in ("log score", "cell log score"):
        return _sharpness_in_words(second - first, names)
    if measure.what in UNITS:
        return _share_in_words(measure, first, second)
    before, after, words = SIZES.get(measure.what, PLAIN_SIZE)
    return f"{before} {_ratio(first, second, words)}{after}"


def _share_in_words(measure: Measure, first: float, second: float) -> str:
    """Return the difference of two errors or coverages."""
    # compared as printed: "up from 5.0" must not stand beside 5.0
    before = _points(first)
    now = _points(second)
    change = "as before" if before == now else f"{'up' if second > first else 'down'} from {before}"
    if measure.what == "coverage":
        percent = "" if before == now else "%"
        level = in_full(measure.level)
        return f"a stated {level} interval holds {now}% of outcomes, {change}{percent}"
    return f"stated chances are off by {now} points, {change}"


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(
        "- " + _wrapped(sentence, WIDTH - 2).replace("\n", "\n  ") for sentence in sentences
    )


def _grid(header: Sequence[str], rows: Iterable[Sequence[str]], right: tuple[int, ...] = ()) -> str:
    # imported here: whoever reads an audit's tables and prints nothing does not wait for rich
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


def _wrapped(sentence: str, width: int = WIDTH) -> str:
    from rich.text import Text

    return _printed(Text(sentence), width)


def _printed(shown: Table | Text, width: int = WIDTH) -> str:
    from rich.console import Console

    # without colours and with a fixed width, so that a summary is the same text everywhere
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=False).print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def _ratio(first: float, second: float, words: tuple[str, str, str]) -> str:
    """Compare two values: "20% wider", "20% narrower", "2.1 times as wide", "about as wide"."""
    more, less, plain = words
    if first == second:
        return f"about as {plain}"
    # a forecaster without spread has width 0, of which everything is infinitely many times
    ratio = second / first if first else math.inf
    if ratio == math.inf:
        return f"beyond comparison {more}"
    if ratio >= 2:
        return f"{ratio:.1f} times as {plain}"
    if abs(ratio - 1) < 0.005:
        return f"about as {plain}"
    return f"{whole_percent(abs(ratio - 1))} {more if ratio > 1 else less}"


def _upper_bound(value: float | None) -> str:
    return bound(lambda share: at_most(share, 3, unit=1), value)


def _points(share: float) -> str:
    # two digits suffice to compare estimates: 9.9, then 10
    return whole_percent(share).removesuffix("%") if share >= 0.0995 else points(share)
