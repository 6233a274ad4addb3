"""First line, chart, tables and JSON of an audit have one count of problems (a property test)."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

from evenhand import Audit, Forecast, audit, audit_pit
from evenhand._validate import Floats
from evenhand.report import audit_brief, findings_of
from evenhand.report.audit import audit_document
from evenhand.report.charts import Chart, Points
from repeats import repeats, statistical

PROBLEM = "problem found"
KINDS = ("0/1", "continuous", "counts", "amounts", "times", "weights", "PITs")
FOUND = re.compile(r"PROBLEM FOUND in ([\d,]+) groups?")
DRAWN = re.compile(r"(\d+) of (\d+) problems are drawn")


def made(kind: str, seed: int) -> Audit:
    """An audit with a fault of random size in a random group, with features and named groups."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.choice([60, 320, 900, 2500]))
    X = pd.DataFrame(
        {"age": rng.integers(18, 90, n), "job": rng.choice(["a", "b", "c"], n), "x": rng.random(n)}
    )
    m = rng.normal(size=n)
    off = np.where(X["job"] == rng.choice(["a", "b"]), rng.choice([0.0, 0.3, 1.0]), 0.0)
    steep = rng.choice([1.0, 1.0, 0.6])
    options: dict[str, Any] = {
        "X": X,
        "groups": ["job"],
        "learned_masses": (0.5,) if rng.random() < 0.5 else (),
        "masses": (0.2, 1.0),
        "n_simulations": 2,
        "random_state": seed,
    }
    outcome: Floats = steep * m + off + rng.normal(size=n)
    forecast = Forecast.from_normal(m, np.ones(n))
    if kind == "PITs":
        return audit_pit(special.ndtr(outcome - m), **options)
    if kind == "0/1":
        outcome = (rng.random(n) < special.expit(steep * m - 1 + off)).astype(float)
        forecast = Forecast.from_probability(special.expit(m - 1))
    elif kind == "counts":
        outcome = rng.poisson(np.exp(steep * m / 2 + off)).astype(float)
        forecast = Forecast.from_poisson(np.exp(m / 2))
    elif kind == "amounts":
        outcome = np.where(rng.random(n) < special.expit(m - 1 + off), 0.0, 30 + outcome)
        amount = Forecast.from_normal(30 + m, np.ones(n))
        forecast = Forecast.from_hurdle(special.expit(m - 1), amount)
    elif kind == "times":
        grid = np.linspace(0.1, 8, 60)
        survival = np.exp(-grid / np.exp(m / 2)[:, None])
        time, lost = rng.exponential(np.exp(steep * m / 2 + off)), rng.exponential(3, n)
        outcome = np.minimum(time, lost)
        forecast = Forecast.from_survival(grid, survival, horizon=3.0)
        options |= {"event": time < lost, "horizon": 3.0}
    elif kind == "weights":
        options |= {"sample_weight": rng.choice([1.0, 3.0], n)}
    return audit(forecast, y=outcome, **options)


def rows_with(found: Audit, column: str) -> int:
    """Number of distinct sets of rows that the tables of an audit mark."""
    tables = [found.groups, found.by_forecast, found.scan, found.positive_part]
    marked: set[tuple[Any, ...]] = set()
    for place, table in enumerate(tables):
        for row in table.to_dict("records") if column in table else []:
            if row[column]:
                of_part = place == 3
                is_everyone = row["group"] == "everyone"
                bias = float(np.nan_to_num(row["bias"]))
                rows = (row["n"], round(row["error"], 9), round(bias, 9))
                marked.add((of_part, is_everyone, *rows))
    return len(marked) + int(found.learned[column].sum())


@statistical
@pytest.mark.parametrize("kind", KINDS)
def test_text_chart_tables_and_json_have_one_count(kind: str) -> None:
    for seed in range(repeats(300 // len(KINDS) + 1, shorter=14)):
        found = made(kind, seed)
        plain = json.loads(json.dumps(found.to_dict()))
        status = plain["status"]
        text = audit_brief(plain, found.notes)
        said = FOUND.search(" ".join(text.split()))
        verdict = {
            "problem found": "PROBLEM FOUND",
            "no problem found": "NO PROBLEM FOUND",
            "too few rows": "TOO FEW ROWS",
        }[status["verdict"]]
        assert text.split("\n")[1].startswith(verdict)
        n_problems = int(said[1].replace(",", "")) if said else 0
        assert n_problems == status["n_problems"] == found.status.n_problems
        assert (status["verdict"] == "problem found") == (n_problems > 0)
        # the same rows under two names count once, and everyone once
        assert n_problems == rows_with(found, "problem")
        document = audit_document(findings_of(plain, found.notes))
        charts = [part for part in document.picture.parts if isinstance(part, Chart)]
        drawn = sum(
            len(layer.points)
            for chart in charts
            for layer in chart.layers
            if isinstance(layer, Points) and layer.label == PROBLEM
        )
        noted = DRAWN.search(str(document.picture))
        assert drawn == (int(noted[1]) if noted else n_problems)
        assert noted is None or int(noted[2]) == n_problems
