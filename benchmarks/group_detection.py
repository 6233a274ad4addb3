"""Planted groups found by the scan and by the learned group, and false alarms of both.

3,000 rows, 8 uniform features x0 to x7, 4 categories c0 to c3 of 2 to 5 levels, forecast N(0, 1),
one planted group: the tables of tests/planted_groups.py. Each search tests at 2.5%, so that both
together have at most 5% of false alarms. A group has the right rows if their Jaccard index with the
planted ones is at least 1/2: those of the first group of the scan, or of the learned group's rule.

python benchmarks/group_detection.py [tables] [calibrated tables]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from evenhand.search import find_group, scan_groups
from evenhand.tables import GroupRule
from planted_groups import PLANTED, planted_table

LEVEL = 0.025


def measured(kind: str | None, seed: int) -> list[float]:
    """Return scan, learned and either search found; their right rows; null p; seconds of both."""
    X, pit, planted = planted_table(kind, seed)
    start = time.process_time()
    scan = scan_groups(pit, X).iloc[0]
    middle = time.process_time()
    group = find_group(pit, X, confidence=1 - LEVEL, random_state=seed)
    stop = time.process_time()
    by_scan = scan["p_adjusted"] < LEVEL
    shown = [GroupRule.parse(scan["group"], X.columns)] if by_scan else []
    shown += [GroupRule(group.conditions)] if group.conditions else []
    masks = [rule.mask(X) for rule in shown]
    right = any((rows & planted).sum() >= 0.5 * (rows | planted).sum() for rows in masks)
    found = [by_scan, group.is_significant, by_scan or group.is_significant, right]
    return [*map(float, found), float(group.p_value < 0.25), middle - start, stop - middle]


def main(n_tables: int, n_calibrated: int) -> None:
    """Print one line per planted group, and one for calibrated forecasts."""
    print("planted     scan  learned  either  right rows  p < 0.25  scan ms  learned ms")
    for kind, n_sets in [*((kind, n_tables) for kind in PLANTED), (None, n_calibrated)]:
        means = np.mean([measured(kind, seed) for seed in range(n_sets)], axis=0)
        shares = "  ".join(f"{share:6.3f}" for share in means[:5])
        times = "  ".join(f"{1000 * seconds:6.1f}" for seconds in means[5:])
        print(f"{kind or 'none':8}  {shares}  {times}", flush=True)


if __name__ == "__main__":
    main(*(int(text) for text in [*sys.argv[1:], "200", "1000"][:2]))
