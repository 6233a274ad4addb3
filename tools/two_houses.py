"""Compare the numbers of the package with those of the package at a tag, job by job.

The wheel of the tag is built from `git archive` and unpacked in a temporary folder, without a
network: other packages are those of this environment. Each job runs in two processes, with the
package of the tag and with that of this checkout, on the same seeded data of each kind of outcome,
plain, randomized and recalibrated::

    python tools/two_houses.py                        # all jobs, against the tag second-house
    python tools/two_houses.py --tag before-18 audit  # some jobs, against another tag

It prints each number that differs by more than 1e-9 of it (`--exact`: at all) with its name, and
exits with code 1 if there is any, or a job fails. Jobs use public names alone. Where one changes,
its spellings stand side by side in `SPELLINGS`, and the first one that a house has is used.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import math
import os
import runpy
import subprocess
import sys
import tarfile
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]

SPELLINGS = {
    "audit": "evenhand:audit",
    "certify": "evenhand:certify",
    "randomize": "evenhand:randomize",
    "plan": "evenhand:plan evenhand.selection:plan evenhand.planning:plan",
    "scan": "evenhand.search:scan_groups",
    "Forecast": "evenhand:Forecast",
    "Outcomes": "evenhand:Outcomes builtins:dict",
    "Columns": "evenhand:ForecastColumns",
    "Randomized": "evenhand:RandomizedRegressor",
    "save": "evenhand:save",
    "Recalibrated": "evenhand:RecalibratedRegressor",
    "Watch": "evenhand:Watch",
    "Rows": "evenhand.monitoring:Rows",
    "Promise": "evenhand.certificates:Promise",
    "Entropic": "evenhand.links:Entropic",
    # methods and attributes
    **{name: name for name in ("repair", "check_", "to_dict", "group_error", "average_error")},
    **{name: name for name in ("coverage", "bias", "promise", "named_table", "positive_part")},
}
"""Public names, each with its spellings, parted by blanks."""


def public(name: str) -> Any:
    """Return what a public name means in this house."""
    for place in SPELLINGS[name].split():
        module, _, attribute = place.partition(":")
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"this house has none of {SPELLINGS[name]}")


def member(one: Any, name: str) -> Any:
    """Return a member of an object by the first of its spellings that it has."""
    return getattr(one, next(word for word in SPELLINGS[name].split() if hasattr(one, word)))


# ---- data: uniform draws, sums and products

KINDS = ("continuous", "count", "hurdle", "yes/no", "censored")
FORMS = ("plain", "randomized", "recalibrated")
N = 400
GRID = [1.0, 2.0, 4.0, 8.0, 16.0]


def people(seed: int) -> pd.DataFrame:
    """Return features of people."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, N)
    table = {"id": np.arange(N) + 1000 * seed, "age": age, "sex": random.integers(1, 3, N)}
    return pd.DataFrame(table | {"region": random.choice(["north", "south", "east"], N)})


def forecast(kind: str, X: pd.DataFrame) -> Any:
    """Return deterministic forecasts of a kind of outcome."""
    make, age = public("Forecast"), X["age"].to_numpy() / 90
    if kind == "continuous":
        return make.from_normal(5 + 4 * age, 1 + 0 * age)
    if kind == "count":
        return make.from_poisson(1 + 3 * age)
    if kind == "hurdle":
        return make.from_hurdle(0.9 - 0.6 * age, make.from_normal(6 + 3 * age, 1 + 0 * age))
    if kind == "yes/no":
        return make.from_probability(0.1 + 0.6 * age)
    scale = 4.1 + 6 * age[:, None]
    return make.from_survival(GRID, scale / (scale + np.array(GRID)), horizon=8.0)


def outcomes(kind: str, X: pd.DataFrame) -> dict[str, Any]:
    """Return outcomes that are higher than forecast for one sex."""
    random = np.random.default_rng(int(X["id"].iloc[0]))
    u = random.random(len(X))
    u = np.where(X["sex"] == 2, 0.4 * u + 0.6 * np.sqrt(u), u)
    if kind != "censored":
        return {"y": forecast(kind, X).distribution.ppf(u)}
    at, cut = (4.1 + X["age"] / 15) * u / (1 - u), 6 + 24 * random.random(len(X))
    return {"y": np.minimum(at, cut).to_numpy(), "event": (at <= cut).to_numpy(), "horizon": 8.0}


def given(known: dict[str, Any]) -> dict[str, Any]:
    """Return outcomes as this house takes them: as one argument, or side by side."""
    made = public("Outcomes")(**known)
    return made if isinstance(made, dict) else {"y": made}


def subject(kind: str, form: str, X: pd.DataFrame) -> Any:
    """Return the forecasts of a form; None for 0/1 outcomes, which are not randomized."""
    if form == "plain":
        return forecast(kind, X)
    if form == "randomized":
        r = (np.arange(4) + np.random.default_rng(4).random((len(X), 4))) / 4
        return None if kind == "yes/no" else forecast(kind, X).randomized(0.2, "entropic", r)
    old = people(7)
    model = public("Recalibrated")(lambda rows: forecast(kind, rows), by="sex", random_state=0)
    return model.fit(old, **given(outcomes(kind, old))).forecast(X)


def each() -> Iterator[tuple[str, str, Any, pd.DataFrame, dict[str, Any]]]:
    """Yield name, kind, forecasts, rows and outcomes of each kind and form."""
    X = people(1)
    for kind in KINDS:
        for form in FORMS:
            found = subject(kind, form, X)
            if found is not None:
                yield f"{kind} {form}", kind, found, X, outcomes(kind, X)


# ---- jobs: name -> values

QUICK: dict[str, Any] = {"masses": (0.2, 1.0), "n_simulations": 4, "random_state": 0}
LEFT_OUT = {"provenance", "rows", "about", "schema", "notes"}
LEFT_OUT |= {"examples", "price"}  # of audits: example people and the price of links are deleted


def values_of(one: Any) -> dict[str, Any]:
    """Return the values of an audit, a watch or a promise."""
    found = member(one, "to_dict")().items()
    return {key: value for key, value in found if key not in LEFT_OUT}


def audits() -> Iterator[tuple[str, Any]]:
    """Audits of each kind and form."""
    for name, _, found, X, y in each():
        made = public("audit")(
            found, X[["age", "sex", "region"]], **given(y), groups=["sex"], min_size=60,
            learned_masses=(0.5,), **QUICK,
        )  # fmt: skip
        yield name, values_of(made)


def certificates() -> Iterator[tuple[str, Any]]:
    """Bounds of the certificate of each kind and form."""
    for name, _, made, X, y in each():
        proof = public("certify")(made, X, **given(y), groups=X[["sex"]], random_state=0)
        yield f"{name}/average", member(proof, "average_error")()
        yield f"{name}/named", member(proof, "named_table")()
        for mass in (0.1, 0.2, 0.5, 1.0):
            for question in ("group_error", "coverage", "bias", "promise"):
                asked = (0.8, mass) if question == "coverage" else (mass,)
                with contextlib.suppress(ValueError):  # what it cannot prove
                    answer = member(proof, question)(*asked)
                    found = values_of(answer) if question == "promise" else answer
                    yield f"{name}/{question} {mass}", found


def selections() -> Iterator[tuple[str, Any]]:
    """Selections of the least randomization, and a plan."""
    X = people(1)
    names = ("alpha", "price", "wider", "group_error", "comparison")
    for kind in ("continuous", "count", "hurdle", "censored"):
        model, mass = lambda rows, one=kind: forecast(one, rows), 1.0 if kind == "censored" else 0.2
        for goal, most in (("goal", 0.48), ("max_wider", 0.5)):
            options = {goal: most, "group_mass": mass, "random_state": 0}
            chosen = public("randomize")(model, X, **given(outcomes(kind, X)), **options)
            yield f"{kind} {goal}", {one: getattr(chosen, one) for one in names}
    yield "plan", values_of(public("plan")(0.3, 0.2, rows=(200, 1000)))


def repairs() -> Iterator[tuple[str, Any]]:
    """Repairs of what audits find."""
    old, new = people(2), people(3)
    for kind in KINDS:
        found = public("audit")(
            forecast(kind, old), old[["age", "sex"]], **given(outcomes(kind, old)), groups=["sex"],
            tolerance=0.0, learned_masses=(), **QUICK,
        )  # fmt: skip
        served = lambda rows, one=kind: forecast(one, rows)  # noqa: E731
        known = given(outcomes(kind, new))
        model = member(found, "repair")(served, new, **known, random_state=0)
        yield f"{kind}/check", member(model, "check_")
        yield f"{kind}/ppf", model.forecast(new[:20]).ppf([0.1, 0.5, 0.9])


def scans() -> Iterator[tuple[str, Any]]:
    """Groups of features, of outcomes that are not cut off."""
    for name, kind, found, X, y in each():
        if kind != "censored":
            pit = found.pit(y["y"], ties=np.random.default_rng(5).random(N))
            yield name, public("scan")(pit, X[["age", "sex", "region"]], 60, random_state=0)


def watches() -> Iterator[tuple[str, Any]]:
    """Watches of a promise and of groups."""
    day = np.repeat(np.arange(N // 10), 10)
    time = np.datetime64("2026-01-05T08:00") + day.astype("timedelta64[D]")
    link, r = public("Entropic")(0.2), 0.001 + 0.998 * np.random.default_rng(6).random(N)
    promise = public("Promise")("mean_pit", 0.2, 0.3, 0.95, link)
    for name, kind, found, X, y in each():
        ties = np.random.default_rng(5).random(N)
        if kind == "censored" or found.is_randomized:
            continue
        u = found.pit(y["y"], ties=ties)
        rows: dict[str, Any] = {"groups": X[["sex"]]}
        if kind == "yes/no":
            rows |= {"outcome": y["y"], "probability": found.event_probability()}
            watch = public("Watch")(groups=["sex"])
        else:
            rows |= {"pit": link.ppf(u, r), "r": r, "link": link}
            watch = public("Watch")(promise, groups=["sex"])
        watch.update(public("Rows").of(time, **rows))
        yield name, values_of(watch)


COLUMNS = {
    "continuous": "mean=mu,std=sigma",
    "count": "mean=mu,outcome=count",
    "hurdle": "chance_of_zero=none,mean=mu,std=sigma",
    "yes/no": "probability=p",
    "censored": "survival=s,horizon=8",
}


def written(kind: str, X: pd.DataFrame, place: Path) -> Path:
    """Write rows with forecasts in columns, and their outcomes."""
    table, made, age = X.copy(), forecast(kind, X), X["age"].to_numpy() / 90
    if kind == "censored":
        scale = 4.1 + 6 * age
        table = table.assign(**{f"s{t:g}": scale / (scale + t) for t in GRID})
    elif kind == "yes/no":
        table["p"] = made.event_probability()
    else:
        part = member(made, "positive_part")() if kind == "hurdle" else made
        table = table.assign(mu=part.mean(), sigma=part.std(), none=0.9 - 0.6 * age)
    table.assign(**outcomes(kind, X)).to_csv(place, index=False)
    return place


def command(*words: Any) -> None:
    """Run a command in this process."""
    sys.argv = ["evenhand", *map(str, words)]
    try:
        runpy.run_module("evenhand", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"evenhand {words[0]} ended with exit code {end.code}") from end


def tables() -> Iterator[tuple[str, Any]]:
    """Tables that commands serve."""
    folder = Path(tempfile.mkdtemp(dir=os.getcwd()))
    out, model, key = folder / "out.csv", folder / "model", folder / "key"
    key.write_bytes(b"sixteen bytes or more")
    key.chmod(0o600)
    served, drawn = ("--id", "id", "--out", out), ("--key-file", key)
    for number, kind in enumerate(KINDS):
        old = written(kind, people(2), folder / f"old{number}.csv")
        new = written(kind, people(3)[:20], folder / f"new{number}.csv")
        event = ("--event", "event") if kind == "censored" else ()
        learn = ("recalibrate", old, "--target", "y", "--by", "sex", *event, "--out", model)
        if hasattr(public("Columns"), "parse"):
            if kind != "yes/no":
                made = public("Randomized")(public("Columns").parse(COLUMNS[kind]), alpha=0.3)
                rows = pd.read_csv(old)
                public("save")(made.fit(rows, rows["y"]), model)
                command("predict", new, "--forecast", model, *drawn, *served)
                yield f"{kind} randomized", cells(out)
            command(*learn, "--forecast", COLUMNS[kind])
            command("predict", new, "--forecast", model, *served)
        else:
            parts = (part.split("=") for part in COLUMNS[kind].split(","))
            options = [
                word for part, name in parts for word in (f"--{part.replace('_', '-')}", name)
            ]
            if kind != "yes/no":
                command("randomize", new, *options, *drawn, "--alpha", "0.3", *served)
                yield f"{kind} randomized", cells(out)
            command(*learn, *options)
            options = [word for word in options if word not in ("--horizon", "8")]
            command("recalibrate", new, *options, "--maps", model, *served)
        yield f"{kind} recalibrated", cells(out)


def cells(place: Path) -> dict[str, dict[str, Any]]:
    """Return the cells of a table by id and column, numbers as such, and remove the file."""
    table = pd.read_csv(place, dtype={"id": str}, float_precision="round_trip").set_index("id")
    place.unlink()
    # only the new house writes the probability of each count
    return table.filter(regex="^(?!p[0-9])").to_dict("index")


JOBS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "audit": audits, "certify": certificates, "randomize": selections, "repair": repairs,
    "scan": scans, "watch": watches, "csv": tables,
}  # fmt: skip

# ---- numbers and their comparison


def numbers(name: str, value: Any) -> Iterator[tuple[str, float | None]]:
    """Yield the numbers in a value with their names; texts name rows and are not compared."""
    if isinstance(value, pd.DataFrame):
        value = value.to_dict("records")
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        for key, one in value.items():
            yield from numbers(f"{name}/{key}", one)
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            label = one.get("group", one.get("measure")) if isinstance(one, dict) else None
            yield from numbers(f"{name}/{i}{f' {label}' if label else ''}", one)
    elif value is None or isinstance(value, bool | int | float):
        yield name, None if value is None or math.isnan(value) else float(value)


def run(job: str, place: Path) -> None:
    """Run a job in this house and write its numbers."""
    warnings.simplefilter("ignore")
    found: dict[str, float | None] = {}
    error = None
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            for name, value in JOBS[job]():
                found |= numbers(f"{job}/{name}", value)
        except Exception:
            error = traceback.format_exc(limit=-3)
    home = str(Path(importlib.import_module("evenhand").__file__ or "").parents[1])
    place.write_text(json.dumps({"home": home, "error": error, "numbers": found}))


def in_house(home: Path, job: str, folder: Path) -> dict[str, Any]:
    """Run a job in a process with the package in a folder, and return what it wrote."""
    place = folder / "result.json"
    environment = os.environ | {"PYTHONPATH": str(home), "PYTHONHASHSEED": "0"}
    words = [sys.executable, __file__, "--run", str(place), job]
    done = subprocess.run(words, env=environment, cwd=folder, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{job} in {home} failed:\n{done.stderr.decode()[-2000:]}")
    found: dict[str, Any] = json.loads(place.read_text())
    if Path(found["home"]).resolve() != home.resolve():
        raise SystemExit(f"the package of {home} was not used, but that of {found['home']}")
    return found


def house_of(tag: str, folder: Path) -> Path:
    """Build the wheel of a tag and return the folder in which it is unpacked."""
    archive = subprocess.run(["git", "archive", tag], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"no tag or commit {tag!r}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder / "source", filter="data")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=folder / "source", check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "old")
    return folder / "old"


def differences(old: dict[str, Any], new: dict[str, Any], rtol: float) -> Iterator[str]:
    """Yield the name of each number that differs, with both."""
    for name in old | new:
        was, now = (one.get(name, "no number") for one in (old, new))
        if isinstance(was, float) and isinstance(now, float) and math.isfinite(was - now):
            if abs(was - now) > rtol * max(abs(was), 1e-3):
                yield f"{name}: {was!r}, now {now!r}"
        elif was != now:
            yield f"{name}: {was}, now {now}"


def main() -> int:
    """Compare the jobs of two houses and print the differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jobs", nargs="*", help=f"jobs to run: {', '.join(JOBS)} (default: all)")
    parser.add_argument("--tag", default="second-house", help="tag or commit of the old house")
    parser.add_argument("--exact", action="store_true", help="print differences of any size")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if set(given.jobs) - set(JOBS):
        parser.error(f"jobs are: {', '.join(JOBS)}")
    if given.run is not None:
        run(given.jobs[0], given.run)
        return 0
    n_numbers, found = 0, []
    with tempfile.TemporaryDirectory() as place:
        old_home = house_of(given.tag, Path(place))
        for job in given.jobs or JOBS:
            old, new = (in_house(home, job, Path(place)) for home in (old_home, ROOT / "src"))
            houses = ((given.tag, old), ("this checkout", new))
            found += [f"{job} fails in {at}:\n{one['error']}" for at, one in houses if one["error"]]
            found += differences(old["numbers"], new["numbers"], 0.0 if given.exact else 1e-9)
            n_numbers += len(old["numbers"] | new["numbers"])
    result = f"{len(found)} differences" if found else "no differences"
    print("\n".join([*found, f"{result} in {n_numbers:,} numbers"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
