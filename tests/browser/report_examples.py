"""Audits as plain values of their JSON: those of golden pages, and others made from them."""

import functools
import json
from pathlib import Path

import msgspec
import numpy as np
from scipy import special

from evenhand import Forecast, audit
from evenhand.results import AuditRows, Detectable, Status, Verdict, plain

PAGES = Path(__file__).parents[1] / "golden" / "pages"
FAMILY = {
    "confidence": 0.95,
    "n_groups": 5,
    "n_by_forecast": 10,
    "n_learned": 0,
    "n_tests": 3,
    "min_size": 150,
    "shares": {"everyone": 0.01, "by_forecast": 0.01, "groups": 0.02, "learned": 0.01},
    "asymptotic": [],
}


def made(values):
    """The typed rows of an audit given as plain values, with the verdict on its problems."""
    unjudged = {"verdict": "no problem found", "is_proven": False, "detectable": []}
    unjudged |= dict.fromkeys(("n_examined", "n_problems", "n_beyond"), 0)
    known = {key: value for key, value in plain(values).items() if value is not None}
    rows = msgspec.convert({"status": unjudged, "family": FAMILY} | known, AuditRows)
    status = Status(
        verdict=Verdict.PROBLEM if rows.problems else Verdict.NO_PROBLEM,
        is_proven=False,
        n_examined=len(rows.examined),
        n_problems=len(rows.problems),
        n_beyond=sum(one.is_beyond(rows.tolerance) for one in rows.examined),
        detectable=(Detectable(n=rows.n_samples, error=0.03),),
    )
    return msgspec.structs.replace(rows, status=status)


EVIL = "<script>alert(1)</script>"


def decided(row, tolerance=0.02):
    """A row with the decisions of an audit: significant by its lower bound or its p-value."""
    is_off = not row.get("too_small") and (
        (row.get("error_low") or 0) > 0 or (row.get("p_adjusted") or 1) < 0.05
    )
    return row | {"off": bool(is_off), "problem": bool(is_off and row["error"] > tolerance)}


def group(name, n, error, low, high, *, bias=None, mean_pit=0.5):
    """A group of a continuous outcome, with the interval of its error."""
    head = {"group": name, "n": n, "error": error, "error_low": low, "error_high": high}
    head |= {"bias": bias, "mean_pit": mean_pit, "coverage_80": 0.8, "coverage_90": 0.9}
    if bias is not None:
        head |= {"bias_low": bias - 0.1, "bias_high": bias + 0.1}
    return decided(head | {"direction": direction(mean_pit < 0.5)})


def direction(is_lower):
    return f"outcomes {'lower' if is_lower else 'higher'} than forecast"


def rates(name, n, predicted, rate, half, **more):
    """A group of 0/1 outcomes whose difference has an interval of a half width."""
    bias = rate - predicted
    row = {"group": name, "n": n, "predicted": predicted, "rate": rate, "error": abs(bias)}
    row |= {"bias": bias, "bias_low": bias - half, "bias_high": bias + half}
    ends = {"error_low": max(abs(bias) - half, 0.0), "error_high": abs(bias) + half}
    return decided(row | ends | {"direction": direction(bias < 0)} | more)


@functools.cache
def golden(name):
    # pages are searched for values of Python
    text = (PAGES / f"{name}.json").read_text(encoding="utf-8")
    return text.replace("= True", "= yes").replace("= False", "= no")


def deterministic():
    """The demo's audit of the model that is off for old women."""
    return json.loads(golden("audit")) | {"status": None}


def randomized():
    """The demo's audit of the randomized model, with bounds that are rounded outwards."""
    values = json.loads(golden("audit-randomized"))
    ends = {"coverage_80_low": 0.514, "coverage_80_high": 0.9445}
    values["certificate"]["every_group"][1] |= {"group_error": 0.3138} | ends
    return values | {"status": None, "caveat": None, "conditions": []}


@functools.cache
def audit_of_scores():
    random = np.random.default_rng(0)
    score = random.normal(size=20_000)
    y = (random.random(20_000) < special.expit(0.62 * score)).astype(float)
    forecast = Forecast.from_probability(special.expit(score))
    return audit(forecast, y=y, random_state=0, name="loans.csv").to_json()


def yes_no():
    """Scores of 20,000 loans that are too extreme: slope 0.62 (verdict.md, section 2)."""
    return json.loads(audit_of_scores()) | {"status": None}


def nothing():
    head = {"name": "", "n_samples": 1, "n_draws": 1, "is_randomized": False}
    return head | {"groups": [{"group": "everyone", "n": 1}]}


def unknown(value, key=""):
    """The values without what may be unknown."""
    if isinstance(value, dict):
        left_out = ("family", "given_forecast")
        return {k: unknown(v, k) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):
        return [unknown(item, key) for item in value]
    kept = {"n_samples", "n_draws", "confidence", "mass", "n", "error", "start", "end", "level"}
    kept |= {"floor", "covered"}
    return None if isinstance(value, float) and key not in kept else value


def many_groups(n=300):
    """An audit with so many more groups by name."""
    values = deterministic() | {"by_forecast": [], "scan": []}
    names = [
        f"postcode={1000 + 7 * i}" if i % 3 else f"age in [{i}, {i + 5}) and sex=f"
        for i in range(n)
    ]
    values["groups"] += [
        group(name, 31 + i, 0.02 + 0.0011 * i, 0.0009 * i if i % 4 else 0.0, 0.06 + 0.0012 * i)
        for i, name in enumerate(names)
    ]
    return values


def no_groups():
    none = {"scan": [], "learned": [], "by_forecast": [], "certificate": None}
    return deterministic() | {"groups": [{"group": "everyone", "n": 1500}]} | none


def hostile():
    """Put markup, and what breaks out of attributes, wherever a text comes from data."""
    values = deterministic()
    worse = "\"><svg onload=alert(1)>'</title></text></style>"
    notes = [{"kind": "", "text": text} for text in (EVIL, worse)]
    values |= {"name": EVIL, "notes": notes, "target": worse}
    values["scores"][0] |= {"measure": EVIL, "unit": worse}
    proof, named = values["certificate"], values["groups"][1:3]
    for i, row in enumerate(named + values["scan"] + proof["groups"]):
        row["group"] = f"{EVIL if i else worse} {i}"
    for row in values["scan"] + values["learned"]:
        row["direction"] = EVIL
    values["learned"][0]["group"] = EVIL
    values["learned"][1]["features"] = [EVIL, worse]
    proof["questions"][0] |= {"question": EVIL, "why": worse}
    proof |= {"assumptions": [EVIL], "not_covered": [worse], "method": EVIL}
    values["provenance"] |= {"command": worse, "draws": EVIL, "packages": {EVIL: worse}}
    values["provenance"]["model"] = {"name": EVIL, "kind": worse, "sha256": EVIL}
    values["provenance"]["data"] = {"name": EVIL, "sha256": worse, "n_rows": 3}
    return values


AUDITS = {
    "deterministic": deterministic,
    "randomized": randomized,
    "nothing": nothing,
    "yes_no": yes_no,
    "unknown_randomized": lambda: unknown(randomized()),
    "unknown_deterministic": lambda: unknown(deterministic()),
    "many_groups": many_groups,
    "no_groups": no_groups,
    "hostile": hostile,
}
