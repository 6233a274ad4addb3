"""Audits as text for a terminal: a table, then sentences in plain words."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand._words import at_least, at_most, percent

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table
    from rich.text import Text

    from evenhand.audits import Audit

WIDTH = 118
SHOWN = 10
"""Scanned groups that are shown."""

SURE = 0.05
"""Adjusted p-value under which a group is surely off."""

MASS = 0.2
COVERAGES = ("coverage_80", "coverage_90")


def audit_text(audit: Audit) -> str:
    """Render one audit: what was audited, what it says, and the tables behind it.

    The order is the reader's: of a deterministic model the groups lead, as nothing can be proven for every group; of
    a randomized one the proof does.
    """
    kind = f"randomized, {_count(audit.n_draws, 'draw')} per person" if audit.is_randomized else "deterministic"
    head = _wrapped(f"Audit of {audit.name} ({kind}) on {_count(audit.n_samples, 'row')}")
    found = [_named(audit), _scanned(audit), _learned(audit)]
    worst = [_worst(audit)]
    parts = [
        head,
        _bullets(_sentences(audit)),
        _scores(audit),
        *(worst + found if audit.is_randomized else found + worst),
    ]
    if audit.notes:
        parts.append(_bullets(f"Note: {note}" for note in audit.notes))
    return "\n\n".join(part for part in parts if part)


def _sharpness_in_words(gap: float, names: tuple[str, str]) -> str:
    if abs(gap) < 0.005:
        return f"{names[1]} is as sharp as {names[0]}"
    return f"{names[1]} is {abs(gap):.2f} nats {'less sharp' if gap > 0 else 'sharper'}"


def _scores(audit: Audit) -> str:
    rows = [
        (row["measure"], _number(row["value"]), f"{_number(row['low'])} to {_number(row['high'])}", row["unit"])
        for row in audit.scores.to_dict("records")
    ]
    return _grid(("measure", "value", "95% band", "unit"), rows, right=(1, 2))


def _named(audit: Audit) -> str:
    header = ("named group", "rows", "error", "95% band", "outcome - forecast", "80% covered", "90% covered")
    rows = [_group_row(row) for row in audit.groups.to_dict("records")]
    return _grid(header, rows, right=(1, 2, 3, 4, 5, 6))


def _scanned(audit: Audit) -> str:
    if audit.scan.empty:
        return ""
    off = int((audit.scan["p_adjusted"] < SURE).sum())
    header = (
        f"scanned group ({off} of {len(audit.scan)} surely off)",
        "rows",
        "error",
        "how",
        "bias",
        "80% cov.",
        "p adj.",
    )
    rows = [
        (
            row["group"],
            str(row["n"]),
            _number(row["error"]),
            row["direction"],
            _number(row["bias"]),
            _share(row["coverage_80"]),
            _p_value(row["p_adjusted"]),
        )
        for row in audit.scan.head(SHOWN).to_dict("records")
    ]
    return _grid(header, rows, right=(1, 2, 4, 5, 6))


def _learned(audit: Audit) -> str:
    if audit.learned.empty:
        return ""
    header = ("learned worst group of", "rows", "error", "at least", "how", "bias", "80% cov.", "in words")
    rows = [
        (
            f"{row['mass']:.0%}",
            str(row["n"]),
            _number(row["error"]),
            at_least(row["low"], 3, unit=1),
            row["direction"],
            _number(row["bias"]),
            _share(row["coverage_80"]),
            row["description"] or "by " + ", ".join(row["features"]),
        )
        for row in audit.learned.to_dict("records")
    ]
    return _grid(header, rows, right=(1, 2, 3, 5, 6))


def _worst(audit: Audit) -> str:
    records = audit.worst_groups.to_dict("records")
    lines = {
        "oracle, in hindsight": "error",
        "the same, calibrated": "null_mean",
        "its upper 5%": "null_high",
    }
    rows = [(label, *(_number(record[key]) for record in records)) for label, key in lines.items()]
    if _is_proven(audit):
        rows.append(("certified for every group", *(_upper_bound(record["certified"]) for record in records)))
    header = ("worst group of", *(f"{record['mass']:.0%}" for record in records))
    return _grid(header, rows, right=tuple(range(1, len(records) + 1)))


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
    if kind == "certified":
        return f"proven for any such group: off by at most {at_most(second)} points; of {names[0]} {at_most(first)}"
    if kind == "log score":
        return _sharpness_in_words(second - first, names)
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
    covered = [f"{row[key]:.0%} ({row[key + '_low']:.0%}-{row[key + '_high']:.0%})" for key in COVERAGES]
    bias = f"{_number(row['bias'])} ({_number(row['bias_low'])} to {_number(row['bias_high'])})"
    return row["group"], str(row["n"]), error, band, bias if math.isfinite(row["bias"]) else "-", *covered


def _sentences(audit: Audit) -> Iterable[str]:
    everyone = audit.groups.iloc[0]
    yield (
        f"On average over everybody, stated chances are off by {_points(everyone['error'])} percentage points "
        "(0 is perfect, 50 the worst); a stated 80% interval holds "
        f"{_points(everyone['coverage_80'])}% of outcomes."
    )
    yield from _proof_sentences(audit) if _is_proven(audit) else _no_proof_sentences(audit)
    yield from _group_sentences(audit)


def _is_proven(audit: Audit) -> bool:
    """Whether bounds for every group say more than that nothing is known."""
    return audit.is_randomized and audit.n_draws > 1 and audit.certificate is not None


def _proof_sentences(audit: Audit) -> Iterable[str]:
    proof = audit.certificate
    if proof is None:
        return
    mass = MASS if proof.mass is None else proof.mass
    low, high = proof.coverage(0.8, mass)
    yield (
        f"Proven with {percent(proof.confidence)} confidence: for every group of at least {percent(mass)} of people, "
        f"named or not, stated chances are off by at most {at_most(proof.group_error(mass))} points, and the 80% "
        f"interval holds {at_least(low)}% to {at_most(high)}% of outcomes. Not covered: {'; '.join(proof.not_covered)}."
    )


def _no_proof_sentences(audit: Audit) -> Iterable[str]:
    if audit.is_randomized:
        yield "Nothing is proven here for groups that were not named; see the notes, or audit several draws per person."
    else:
        yield (
            "With one forecast per person nothing can be proven for groups that were not named beforehand: even the "
            "true distribution scores about 40 points in the worst fifth picked in hindsight. The last table measures "
            "what can be proven, not harm."
        )


def _group_sentences(audit: Audit) -> Iterable[str]:
    named = audit.groups.iloc[1:]
    named = named[~named["too_small"]]
    if len(named):
        worst = named.sort_values("error").iloc[-1]
        yield (
            f"Of the named groups, {worst['group']} ({worst['n']} rows) is furthest off: by "
            f"{_points(worst['error'])} points, "
            f"95% band {_points(worst['error_low'])} to {_points(worst['error_high'])}."
        )
    if len(audit.scan):
        sure = audit.scan[audit.scan["p_adjusted"] < SURE]
        if sure.empty:
            yield f"Of {len(audit.scan)} groups by features, none is surely off."
        else:
            row = sure.iloc[0]
            lean = f", by {_number(row['bias'])} units of y on average" if math.isfinite(row["bias"]) else ""
            yield (
                f"Of {len(audit.scan)} groups by features, {len(sure)} {'is' if len(sure) == 1 else 'are'} surely off "
                f"(5% risk over all of them); the surest: {row['group']} ({row['n']} rows), {row['direction']}{lean}."
            )
    if len(audit.learned):
        row = audit.learned.sort_values("low").iloc[-1]
        words = f" ({row['description']})" if row["description"] else ""
        if row["low"] > 0:
            yield (
                f"A group of {row['mass']:.0%} that the features define{words} is off by {_points(row['error'])} "
                f"points, surely by {at_least(row['low'])} or more: {row['direction']}."
            )
        else:
            yield "No group that a learner could define by features is surely off."


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join("- " + _wrapped(sentence, WIDTH - 2).replace("\n", "\n  ") for sentence in sentences)


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


def _wrapped(sentence: str, width: int = WIDTH) -> str:
    from rich.text import Text

    return _printed(Text(sentence), width)


def _printed(shown: Table | Text, width: int = WIDTH) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=False).print(shown)
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


def _upper_bound(value: float) -> str:
    return at_most(value, 3, unit=1) if math.isfinite(value) else "-"


def _share(value: float) -> str:
    return f"{value:.0%}" if math.isfinite(value) else "-"


def _p_value(value: float) -> str:
    return "-" if not math.isfinite(value) else "<0.0001" if value < 1e-4 else f"{value:.2g}"


def _points(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
