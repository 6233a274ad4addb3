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


def table_lines(table: TableScores) -> Iterator[str]:
    """Yield the block of a table: scores with ranks, then paired differences."""
    grid = "" if table.step is None else f"; outcomes on a grid of {table.step:g}, cell log score"
    yield f"{table.name}: {table.y.size:,} rows, {table.n_features} features{grid}"
    yield (
        f"{'':10}{'log score':>14}{'CRPS':>15}{'RMSE':>11}{'average error':>15}"
        f"{'90% coverage':>14}{'fit CPU, s':>12}"
    )
    placed = {score: ranks(table.ranked(score)) for score in RANKED}
    for name in SHOWN:
        if name in table.scores:
            yield _score_line(table, name, {score: placed[score].get(name) for score in RANKED})
    own = [name for name in DEFAULTS if name in table.scores]
    if not own or len(table.scores) < 2:
        return
    yield "  difference to each (mean and standard error; below 0 the default is better)"
    yield f"{'':10}" + "".join(
        f"{f'{name}, {RANKED[score]}':>24}" for name in own for score in RANKED
    )
    for other in FIELD:
        if other in table.scores:
            yield f"{other:10}" + "".join(
                f"{_difference(table, name, other, score):>24}" for name in own for score in RANKED
            )


def _score_line(table: TableScores, name: str, place: dict[str, int | None]) -> str:
    rows = table.scores[name]
    log, score = (
        f"{rows[kind].mean():#.4g}{f' ({place[kind]})' if place[kind] else '    '}"
        for kind in ("log", "crps")
    )
    rmse = np.sqrt(((rows["mean"] - table.y) ** 2).mean())
    error = calibration_error(rows["pit"])
    coverage = covered(rows["pit"], 0.9).mean()
    return (
        f"{name:10}{log:>14}{score:>15}{rmse:>#11.4g}{error:>15.3f}{coverage:>14.3f}"
        f"{table.cpu[name]:>12.1f}"
    )


def _difference(table: TableScores, name: str, other: str, score: str) -> str:
    if name == other:
        return ""
    mean, error = paired(table.scores[name][score], table.scores[other][score])
    return f"{mean:+.3g} ± {error:.2g}"


def summary_lines(tables: Sequence[TableScores]) -> Iterator[str]:
    """Yield the counts of all forecasters over complete tables."""
    yield (
        f"{'':10}{'mean rank':>18}{'first or within one':>24}{'last':>18}{'fit CPU over that'}"
        f"{' of NGBoost'}"
    )
    yield (
        f"{'':10}{'log score':>11}{'CRPS':>7}{'se: log score':>16}{'CRPS':>8}{'log score':>11}"
        f"{'CRPS':>7}{'total':>12}{'most':>9}"
    )
    for name in FIELD:
        cells = [f"{name:10}"]
        for score, width in zip(RANKED, (11, 7), strict=True):
            mean = np.mean([ranks(table.ranked(score))[name] for table in tables])
            cells.append(f"{mean:>{width}.2f}")
        for score, width in zip(RANKED, (16, 8), strict=True):
            near = sum(name in near_first(table.ranked(score)) for table in tables)
            cells.append(f"{near:>{width}}")
        for score, width in zip(RANKED, (11, 7), strict=True):
            cells.append(f"{sum(last(table.ranked(score)) == name for table in tables):>{width}}")
        most = max(cpu_ratio([table], name) for table in tables)
        cells.append(f"{cpu_ratio(tables, name):>12.2f}{most:>9.2f}")
        yield "".join(cells)
    yield ""
    yield "first or within one standard error of first:"
    for table in tables:
        near = []
        for score, shown in RANKED.items():
            leaders = near_first(table.ranked(score))
            near.append(f"{shown}: {', '.join(name for name in FIELD if name in leaders)}")
        ratios = ", ".join(f"{name} {cpu_ratio([table], name):.2f}" for name in DEFAULTS)
        yield f"  {table.name}: {'; '.join(near)}; CPU over {REFERENCE}: {ratios}"


def claim_lines(tables: Sequence[TableScores]) -> tuple[list[str], bool]:
    """Return a line for each claim, and whether all of them hold."""
    found = list(claims(tables))
    lines = [
        f"{'held' if claim.is_held else 'NOT HELD'}: {claim.sentence}: {claim.found}"
        for claim in found
    ]
    return lines, all(claim.is_held for claim in found)
