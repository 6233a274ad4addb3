"""Text of the forecast benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from comparison import (
    DEFAULTS,
    FIELD,
    RANKED,
    REFERENCE,
    SHOWN,
    TableScores,
    claims,
    cpu_ratio,
    last,
    near_first,
    paired,
    ranks,
)

from evenhand.calibration import calibration_error, covered

NAME = max(map(len, SHOWN)) + 2
"""Width of the column of names."""


def table_lines(table: TableScores) -> Iterator[str]:
    """Yield the block of a table: scores with ranks, then paired differences."""
    grid = "" if table.step is None else f" on a grid of {table.step:g}: cell log score"
    distinct = np.unique(table.y).size
    yield (
        f"{table.name}: {table.y.size:,} rows, {table.n_features} features, {distinct:,} distinct"
        f" outcomes{grid}"
    )
    yield (
        f"{'':{NAME}}{'log score':>12}{'rank':>6}{'CRPS':>11}{'rank':>6}{'RMSE':>11}"
        f"{'average error':>15}{'90% coverage':>14}{'fit CPU, s':>12}{'predict, s':>12}"
    )
    places = {score: ranks(table.ranked(score)) for score in RANKED}
    for name in SHOWN:
        if name in table.scores:
            yield _score_line(table, name, [str(places[score].get(name, "")) for score in RANKED])
    own = [name for name in DEFAULTS if name in table.scores]
    others = [name for name in FIELD if name in table.scores]
    if not own or len(others) < 2:
        return
    yield (
        f"{'difference to':{NAME}}"
        + "".join(f"{f'{name}, {shown}':>26}" for name in own for shown in RANKED.values())
    )
    for other in others:
        yield f"{other:{NAME}}" + "".join(
            f"{_difference(table, name, other, score):>26}" for name in own for score in RANKED
        )


def _score_line(table: TableScores, name: str, places: Sequence[str]) -> str:
    rows = table.scores[name]
    rmse = np.sqrt(((rows["mean"] - table.y) ** 2).mean())
    error = calibration_error(rows["pit"])
    coverage = covered(rows["pit"], 0.9).mean()
    return (
        f"{name:{NAME}}{rows['log'].mean():>12.3f}{places[0]:>6}{_short(rows['crps'].mean()):>11}"
        f"{places[1]:>6}{_short(rmse):>11}{error:>15.3f}{coverage:>14.3f}{table.cpu[name]:>12.1f}"
        f"{table.predict[name]:>12.2f}"
    )


def _short(value: float) -> str:
    """Return four digits, or all digits before the decimal point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.4g}"


def _difference(table: TableScores, name: str, other: str, score: str) -> str:
    if name == other:
        return ""
    mean, error = paired(table.scores[name][score], table.scores[other][score])
    # two digits of the standard error, as many decimals for the difference
    decimals = int(np.clip(1 - np.floor(np.log10(error)), 0, 6)) if error > 0 else 3
    return f"{mean:+,.{decimals}f} ± {error:,.{decimals}f}"


def summary_lines(tables: Sequence[TableScores]) -> Iterator[str]:
    """Yield the counts of all forecasters over complete tables."""
    heads = ("mean rank", "within one se of first", "last")
    yield (
        f"{'':{NAME}}" + "".join(f"{head:>26}" for head in heads) + f"{'CPU over ' + REFERENCE:>20}"
    )
    pair = "".join(f"{shown:>13}" for shown in RANKED.values())
    yield f"{'':{NAME}}" + pair * len(heads) + f"{'total':>10}{'most':>10}"
    for name in FIELD:
        cells = [f"{name:{NAME}}"]
        for score in RANKED:
            place = np.mean([ranks(table.ranked(score))[name] for table in tables])
            cells.append(f"{place:>13.2f}")
        for score in RANKED:
            near = sum(name in near_first(table.ranked(score)) for table in tables)
            cells.append(f"{near:>13}")
        for score in RANKED:
            lasts = sum(name == last(table.ranked(score)) for table in tables)
            cells.append(f"{lasts:>13}")
        most = max(cpu_ratio([table], name) for table in tables)
        cells.append(f"{cpu_ratio(tables, name):>10.2f}{most:>10.2f}")
        yield "".join(cells)
    yield ""
    yield "first or within one standard error of first; last; CPU of fits over that of NGBoost"
    for table in tables:
        ratios = ", ".join(f"{name} {cpu_ratio([table], name):.2f}" for name in DEFAULTS)
        yield f"{table.name}, {table.y.size:,} rows: CPU {ratios}"
        for score, shown in RANKED.items():
            leaders = near_first(table.ranked(score))
            near = ", ".join(name for name in FIELD if name in leaders)
            yield f"    {shown}: {near}; last {last(table.ranked(score))}"


def claim_lines(tables: Sequence[TableScores]) -> tuple[list[str], bool]:
    """Return a line for each claim, and whether all of them hold."""
    found = list(claims(tables))
    lines = [
        f"{'held' if claim.is_held else 'NOT HELD'}: {claim.sentence}: {claim.found}"
        for claim in found
    ]
    return lines, all(claim.is_held for claim in found)
