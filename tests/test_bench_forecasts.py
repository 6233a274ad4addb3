"""Pure parts of the forecast benchmark: tables, folds, scores, comparison and claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evenhand import Forecast

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "forecasts"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARK))
    import comparison
    import scores
    import tables


def made_up(
    levels: dict[str, float],
    cpu: dict[str, float] | None = None,
    name: str = "made up",
    n: int = 50,
) -> comparison.TableScores:
    """Return a table on which a forecaster's scores are a level plus small noise of its own."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    found = {}
    for forecaster in comparison.FIELD:
        level = levels.get(forecaster, 1.0)
        noise = 0.01 * rng.normal(size=(2, n))
        found[forecaster] = {
            "log": level + noise[0],
            "crps": level + noise[1],
            "mean": np.zeros(n),
            "pit": stats.norm.cdf(y),
        }
    seconds = dict.fromkeys(comparison.FIELD, 1.0) | (cpu or {})
    return comparison.TableScores(name, 3, None, y, found, seconds, seconds)


def held(found: list[comparison.TableScores]) -> list[bool]:
    return [claim.is_held for claim in comparison.claims(found)]


def test_tables_are_sorted_and_alternate_between_choosing_and_report():
    names = [table.name.lower() for table in tables.TABLES]
    assert names == sorted(set(names))
    for place, table in enumerate(tables.TABLES):
        assert (table in tables.CHOOSING) == (place % 2 == 0)
        assert (table in tables.REPORTED) == (place % 2 == 1)
    # the roles that were committed before the first run
    assert {"crime", "diamonds", "engel"} <= {table.name for table in tables.CHOOSING}
    assert {"credit", "diabetes", "Wages"} <= {table.name for table in tables.REPORTED}


def test_scores_of_rounded_outcomes_are_those_of_cells_of_the_whole_table():
    whole = np.repeat([0.0, 0.5, 1.0, 1.5], 5)
    scale = scores.Scale.of(whole)
    assert (scale.step, scale.span) == (0.5, (0.0, 1.5))
    # the extremes of these rows are inner cells of the table, but for the last row
    y = np.array([0.5, 1.0, 1.5])
    mean = np.array([0.4, 0.2, 1.0])
    found = scores.row_scores(Forecast.from_normal(mean, np.ones(3)), y, scale)
    low = stats.norm.cdf(y - 0.25, mean)
    high = np.array([*stats.norm.cdf(y[:2] + 0.25, mean[:2]), 1.0])
    np.testing.assert_allclose(found["log"], -np.log((high - low) / 0.5), rtol=1e-9)
    assert ((found["pit"] > low) & (found["pit"] < high)).all()


def test_claims_hold_where_a_default_leads_and_none_is_last_or_slow():
    good = made_up({"network": 0.5, "conformal": 2.0})
    assert held([good] * 4) == [True] * 7


def test_claims_of_never_being_last_and_of_cpu_are_judged_for_each_default():
    last = made_up({"network": 0.5, "boosted": 2.0})
    assert held([last]) == [True, True, False, True, True, True, True]
    slow = made_up({"network": 0.5, "conformal": 2.0}, {"network": 3.5}, "slow")
    fast = made_up({"network": 0.5, "conformal": 2.0}, {"network": 0.1, "ngboost": 9.0})
    found = list(comparison.claims([slow, fast]))
    assert [claim.is_held for claim in found] == [True, True, True, True, False, True, True]
    # 3.6 seconds of 10 in total, 3.5 times on one table
    assert [claim.found for claim in found[3:5]] == ["0.36 times", "3.50 times on slow"]
