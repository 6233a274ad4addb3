"""Demonstration on generated doses: find the group, repair the model, prove the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from evenhand._files import check_folder
from evenhand._format import percent
from evenhand._validate import InputError
from evenhand.audits import (
    Audit,
    Search,
    audit,
    compare,
    parse_condition,
    with_conditions,
    with_sources,
)
from evenhand.datasets import Dataset, make_doses
from evenhand.draws import nodes
from evenhand.forecasters import RecalibratedRegressor
from evenhand.selection import Selection, randomize
from evenhand.store import save
from evenhand.tables import GroupRule

SCHEMA = "evenhand.demo/1"

N_TRIAL = 8000
N_PART = 2000
"""Number of patients of each step."""

STEPS = ("clinics-find", "clinics-repair", "clinics-prove")
"""Names of the tables of the three steps."""

GROUPS = ("sex", "age", "clinic")
GROUP_SIZE = 0.2
SEARCH = Search(learned_masses=(GROUP_SIZE, 0.5))
"""Search of step 1, where no group is smaller than those of the certificate."""

GOAL = 0.25


def part_of(data: Dataset, start: int, stop: int, letter: str) -> Dataset:
    """Return the patients from `start` to `stop`, indexed by ids that start with `letter`."""
    ids = pd.Index([f"{letter}{row:04d}" for row in range(start, stop)], name="patient")
    X, y, truth = data.X[start:stop], data.y[start:stop], data.truth[start:stop]
    return replace(data, X=X.set_axis(ids), y=y.set_axis(ids), truth=truth.set_axis(ids))


def make_tables(seed: int) -> dict[str, Dataset]:
    """Generate the tables of the trial and of the three steps, each with other patients."""
    trial = make_doses(N_TRIAL, cohort="trial", random_state=2 * seed)
    clinics = make_doses(3 * N_PART, random_state=2 * seed + 1)
    starts = zip(STEPS, range(0, 3 * N_PART, N_PART), strict=True)
    steps = {name: part_of(clinics, start, start + N_PART, "c") for name, start in starts}
    return {"trial": part_of(trial, 0, N_TRIAL, "t"), **steps}


def train(trial: Dataset, seed: int) -> RecalibratedRegressor:
    """Fit gradient boosting, with the distribution of its errors estimated by cross-fitting."""
    encoded = make_column_transformer(
        (OrdinalEncoder(), ["sex", "clinic"]), remainder="passthrough"
    )
    # many small trees: the true mean dose is nearly additive
    boosting = make_pipeline(
        encoded, HistGradientBoostingRegressor(max_iter=200, max_leaf_nodes=6, random_state=seed)
    )
    return RecalibratedRegressor(boosting, random_state=seed).fit(trial.X, trial.y)


def options_of(part: Dataset, groups: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return options of audits of some patients."""
    return {
        "groups": {column: part.X[column] for column in GROUPS} | dict(groups),
        "random_state": seed,
        "about": {
            "unit": "mg per week",
            "population": "generated patients of clinics",
            "purpose": "demonstration on a generated table",
        },
    }


def worst_rule(found: Audit) -> GroupRule:
    """Return the rule of the learned group of `GROUP_SIZE`, else of another group that is off."""
    ruled = [one for one in found.off if one.rule is not None]
    # learned groups first: they may combine more than two features, and cut anywhere
    ruled.sort(key=lambda group: (group.mass is None, group.mass != GROUP_SIZE))
    if not ruled or ruled[0].rule is None:
        raise InputError("the audit found no group that is off with this seed; use another --seed")
    return GroupRule.from_state(ruled[0].rule)


def randomized(repaired: RecalibratedRegressor, part: Dataset, seed: int) -> Selection:
    """Choose the least randomization of a fitted model that fresh patients prove."""
    return randomize(
        FrozenEstimator(repaired),
        part.X,
        part.y,
        goal=GOAL,
        group_mass=GROUP_SIZE,
        random_state=seed,
    )


def variant_coverage(model: Any, patients: Dataset) -> float:
    """Return the true coverage of 80% intervals for patients with the variant no column records.

    In expectation over draws. Doses are rounded to 0.1 mg, which is neglected.
    """
    has = patients.truth["variant"].to_numpy()
    forecast = model.forecast(patients.X, nodes(64))
    mean, std = (patients.truth[[name]].to_numpy() for name in ("mean", "std"))
    # one column per draw; a deterministic forecast has one
    ends = (forecast.ppf(at).reshape(len(mean), -1) for at in (0.1, 0.9))
    low, high = (stats.norm.cdf((end - mean) / std) for end in ends)
    return float((high - low)[has].mean())


def run(
    out: Path, seed: int, inform: Callable[[str], None], *, command: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Run the demonstration; return its text and, for JSON, where its files are.

    The `command` line is printed in the reports.
    """
    # checked before anything is computed
    check_folder(out)
    tables = make_tables(seed)
    inform(f"training on {N_TRIAL:,} participants of a trial without women over 60 ...")
    model = train(tables["trial"], seed)
    others, more, fresh = (tables[name] for name in STEPS)
    inform(f"finding groups among {N_PART:,} patients of the clinics ...")
    asked = options_of(others, {}, seed)
    found = audit(model, others.X, others.y, name="model", search=SEARCH, **asked)
    rule = worst_rule(found)
    inform(f"repairing the model with {N_PART:,} others ...")
    repaired = found.repair(model, more.X, more.y, random_state=seed)
    inform(f"proving on {N_PART:,} fresh patients ...")
    chosen = randomized(repaired, fresh, seed)
    models = {"model": model, "model-repaired": repaired, "model-randomized": chosen.model}
    names = ("model", "repaired model", "randomized model")
    # the same rows and the same seed, so that differences are due to the models
    asked = options_of(fresh, {rule.name: rule.mask(fresh.X)}, seed)
    changes = compare(model, repaired, fresh.X, fresh.y, names=names[:2], **asked)
    before, after = changes.audits
    drawn = audit(chosen.model, fresh.X, fresh.y, name=names[2], **asked)
    limit = f"certified_group_error({GROUP_SIZE:g}) > {GOAL:g}"
    proof = with_conditions(chosen.audited(drawn), [parse_condition(limit)])

    inform("writing reports ...")
    out.mkdir(parents=True, exist_ok=True)
    for name, part in tables.items():
        part.X.assign(dose=part.y).to_csv(out / f"{name}.csv", lineterminator="\n")
    for name, one in models.items():
        save(one, out / name)
    sourced = {}
    for ending, one, name, table in (
        ("", found, "model", STEPS[0]),
        ("-before", before, "model", STEPS[2]),
        ("-repaired", after, "model-repaired", STEPS[2]),
        ("-randomized", proof, "model-randomized", STEPS[2]),
    ):
        made = with_sources(one, command=command, model=out / name, data=out / f"{table}.csv")
        made.to_json(out / f"audit{ending}.json")
        made.to_html(out / f"report{ending}.html")
        sourced[ending] = made
    pair = sourced["-before"], sourced["-repaired"]
    made_by = dict(zip(("before", "after"), (one.provenance for one in pair), strict=True))
    changes.with_rows(provenance=made_by).to_html(out / "comparison.html")

    covered = [percent(variant_coverage(one, fresh), decimals=0) for one in models.values()]
    text = f"""1. FIND: for whom is the model wrong?

{found.summary()}

2. REPAIR: recalibrate by group, and check on fresh patients

{after.summary()}

3. PROVE: for every group of at least 20% of patients, named or not

{chosen.summary()}

Patients with a gene variant that no column records, whose true coverage is known here: the 80%
interval covers {covered[0]} of their doses, {covered[1]} after the repair, {covered[2]} randomized.

Open {out / "report.html"}; comparison.html compares before and after the repair."""
    files = sorted(path.name for path in out.iterdir())
    return text, {"schema": SCHEMA, "out": str(out), "report": "report.html", "files": files}
