"""Compute the table of the page `docs/plan.rst` with `evenhand.plan`.

    python tools/make_explore_table.py

Every value is rounded to the safe side: what a certificate guarantees down, what it costs up. It
takes about five minutes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from scipy.stats import norm

from evenhand import plan
from evenhand.certificates import WIDER_LEVELS, coverage_floor
from evenhand.selection import PlannedCertificate

TABLE = Path(__file__).parents[1] / "docs" / "explore.json"

CONFIDENCE = 0.95
MASSES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
ROWS = (200, 300, 500, 1000, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000)
ERRORS = (0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225, 0.25, 0.275, 0.3, 0.35, 0.4)


def percent_down(share: float) -> int:
    """Return the largest whole percentage that is not above a share."""
    return math.floor(100 * share)


def percent_up(share: float) -> int:
    """Return the smallest whole percentage that is not below a share."""
    return math.ceil(100 * share - 1e-9)


def cell(planned: PlannedCertificate) -> list[float] | None:
    """Return one certificate as alpha, price, percent wider, floor and ceiling; None for none."""
    if planned.alpha is None:
        return None
    assert planned.price is not None
    assert planned.wider is not None
    assert planned.coverage_low is not None
    assert planned.coverage_high is not None
    digits = 3 - math.floor(math.log10(planned.alpha))
    return [
        math.floor(planned.alpha * 10**digits) / 10**digits,
        math.ceil(100 * planned.price - 1e-9) / 100,
        percent_up(planned.wider),
        percent_down(planned.coverage_low),
        percent_up(planned.coverage_high),
    ]


def certificates(error: float, mass: float) -> list[list[float] | None]:
    """Return a cell for each number of rows."""
    planned = plan(error, mass, confidence=CONFIDENCE, rows=ROWS)
    return [cell(one) for one in planned.certificates[:-1]]


def floors(mass: float, n: int) -> list[int]:
    """Return what the wider intervals of a right model cover at least, in percent."""
    return [
        percent_down(coverage_floor(math.ceil((1 - level) * n - 1e-9), n, level, mass, CONFIDENCE))
        for level in WIDER_LEVELS
    ]


def width(level: float) -> int:
    """Return by how many percent an interval of a normal forecast is wider than the 80% one."""
    return percent_up(norm.ppf((1 + level) / 2) / norm.ppf(0.9) - 1)


def table() -> dict[str, Any]:
    """Return the whole table."""
    return {
        "confidence": CONFIDENCE,
        "masses": MASSES,
        "rows": ROWS,
        "errors": ERRORS,
        # by group size, error and number of rows
        "certificates": [[certificates(error, mass) for error in ERRORS] for mass in MASSES],
        "levels": WIDER_LEVELS,
        "level_widths": [width(level) for level in WIDER_LEVELS],
        # by group size, number of rows and level
        "level_floors": [[floors(mass, n) for n in ROWS] for mass in MASSES],
    }


if __name__ == "__main__":
    TABLE.write_text(json.dumps(table(), separators=(",", ":")) + "\n", encoding="utf-8")
