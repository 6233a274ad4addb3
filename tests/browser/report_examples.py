"""Audits as plain values, made by hand in the layout of their JSON, and as typed rows."""

import math
from copy import deepcopy

import msgspec

from evenhand.results import AuditRows, Detectable, Status, Verdict, plain


def made(values):
    """The typed rows of an audit given as plain values, with the verdict on its problems."""
    unjudged = {"verdict": "no problem found", "is_proven": False, "detectable": []}
    unjudged |= dict.fromkeys(("n_examined", "n_problems", "n_beyond"), 0)
    known = {key: value for key, value in plain(values).items() if value is not None}
    rows = msgspec.convert({"status": unjudged, "family": FAMILY} | known, AuditRows)
    if rows.status.detectable:
        return rows
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


def group(name, n, error, low, high, *, bias=None, mean_pit=0.5, cover=0.8, too_small=False):
    bands = {"bias": bias, "bias_low": None, "bias_high": None}
    if bias is not None:
        bands |= {"bias_low": bias - 0.1, "bias_high": bias + 0.1}
    for level, value in (("80", cover), ("90", (1 + cover) / 2)):
        key = f"coverage_{level}"
        bands |= {key: value, f"{key}_low": value - 0.03, f"{key}_high": min(value + 0.03, 1.0)}
    head = {
        "group": name,
        "n": n,
        "error": error,
        "error_low": low,
        "error_high": high,
        "mean_pit": mean_pit,
        "direction": f"outcomes {'lower' if mean_pit < 0.5 else 'higher'} than forecast",
    }
    return decided(head | bands | {"too_small": too_small})


def scanned(name, n, error, direction, bias, p_adjusted):
    tests = {"p_value": p_adjusted / 50, "p_adjusted": p_adjusted, "features": name.split(" and ")}
    row = {
        "group": name,
        "n": n,
        "error": error,
        "direction": direction,
        "bias": bias,
        "coverage_80": 0.71,
    }
    return decided(row | tests)


def found(mass, n, error, low, description):
    told = {
        "p_adjusted": 0.0012 if low else 0.9,
        "p_value": 0.0004 if low else 0.3,
        "direction": "outcomes lower than forecast",
        "bias": -0.62,
    }
    told |= {
        "coverage_80": 0.66,
        "group": description or "",
        "description_share": 0.21,
        "features": ["age", "sex"],
    }
    head = {"mass": mass, "n": n, "n_judged": 900, "error": error, "error_low": low}
    return decided(head | told)


SCORES = [
    {"measure": "log score", "value": 1.512, "low": 1.47, "high": 1.55, "unit": "nats"},
    {"measure": "CRPS", "value": 0.6012, "low": 0.58, "high": 0.62, "unit": "units of y"},
    {
        "measure": "80% interval width",
        "value": 12563.1,
        "low": 12000.2,
        "high": 13000.9,
        "unit": "units of y",
    },
    {"measure": "80% coverage", "value": 0.772, "low": 0.75, "high": 0.79, "unit": "share"},
    {"measure": "average error", "value": 0.0413, "low": 0.02, "high": 0.06, "unit": "probability"},
]
QUESTIONS = [
    {
        "question": "is it calibrated on average",
        "answered": True,
        "why": "one PIT per person suffices",
    },
    {
        "question": "is it calibrated for groups formed after the draws",
        "answered": False,
        "why": "lucky draws",
    },
]
CERTIFICATE = {
    "confidence": 0.95,
    "method": "local-levels",
    "n_samples": 1500,
    "n_draws": 64,
    "average_error": 0.0521,
    "groups": [{"group": "sex=f", "n": 740, "error": 0.09, "low": 0.043, "high": 0.137}],
    "every_group": [
        {"mass": m, "group_error": e, "chain": c, "coverage_80_low": low, "coverage_80_high": high}
        for m, e, c, low, high in (
            (0.1, 0.394, 0.5, 0.37, 0.98),
            (0.2, 0.3138, 0.47, 0.514, 0.9445),
            (0.5, 0.19, 0.39, 0.65, 0.9),
            (1.0, 0.0521, None, 0.75, 0.84),
        )
    ],
    "questions": QUESTIONS,
    "assumptions": ["the rows are a sample of the people the statement is about"],
    "not_covered": ["a shift in time or population after these rows"],
}


# share of people missed at most, share covered, mean width over that of the 80% intervals
PLAIN = {0.9: (0.131, 0.887, 0.71), 0.95: (0.071, 0.946, 0.85), 0.98: (0.038, 0.974, 1.01)}
PLAIN |= {0.99: (0.023, 0.988, 1.12)}


def plain_intervals(scale=1.0):
    return [
        {
            "level": level,
            "mass": mass,
            "floor": max(1 - missed / mass, 0.0),
            "covered": covered,
            "width": scale * width,
        }
        for mass in (0.1, 0.2, 0.5, 1.0)
        for level, (missed, covered, width) in PLAIN.items()
    ]


def note(text):
    return {"kind": "", "text": text}


def deterministic():
    surest = scanned(
        "age > 45 and sex = f", 420, 0.2312, "outcomes lower than forecast", -0.81, 0.00003
    )
    many = [
        scanned(f"x{i} > 0.5", 700, 0.05 - i / 1000, "mixed", 0.02, min(0.01 * (i + 1), 1.0))
        for i in range(30)
    ]
    certificate = deepcopy(CERTIFICATE) | {"n_draws": 1}
    return {
        "schema": "evenhand.audit/1",
        "name": "risk model",
        "n_samples": 1500,
        "n_draws": 1,
        "is_randomized": False,
        "rounding_step": 0.01,
        "scores": deepcopy(SCORES),
        "groups": [
            group("everyone", 1500, 0.041, 0.02, 0.062, bias=-0.13, mean_pit=0.46, cover=0.772),
            group("sex=m", 760, 0.012, 0.0, 0.037, bias=0.05, mean_pit=0.505),
            group("sex=f", 740, 0.092, 0.061, 0.12, bias=-0.31, mean_pit=0.42, cover=0.74),
            group("region=north", 21, 0.08, 0.0, 0.25, bias=0.1, mean_pit=0.55, too_small=True),
        ],
        "scan": [surest, *many],
        "learned": [
            found(0.1, 90, 0.26, 0.14, "age > 45 and sex = f"),
            found(0.2, 180, 0.2141, 0.1523, "age > 44 and sex = f"),
            found(0.5, 450, 0.08, 0.0, None),
        ],
        "worst_groups": [],
        "certificate": certificate,
        "notes": [note("column 'id' was not scanned: too many values")],
    }


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
EMPTY = (
    *("scores", "scan", "learned", "worst_groups", "notes", "positive_part", "plain_intervals"),
    *("by_forecast", "probability_scores", "calibration", "reliability"),
)


def rates(name, n, predicted, rate, half, **more):
    """A group of 0/1 outcomes whose difference has an interval of a half width."""
    bias = rate - predicted
    row = {"group": name, "n": n, "predicted": predicted, "rate": rate, "error": abs(bias)}
    row |= {"bias": bias, "bias_low": bias - half, "bias_high": bias + half}
    row["direction"] = f"outcomes {'lower' if bias < 0 else 'higher'} than forecast"
    ends = {"error_low": max(abs(bias) - half, 0.0), "error_high": abs(bias) + half}
    return decided(row | ends | more)


def yes_no():
    """Scores of 20,000 loans that are too extreme: slope 0.62 (verdict.md, section 2)."""
    tenths = (9.9, 9.6, 6.5, 7.7, 2.2, 0.7, -4.2, -7.9, -7.7, -9.1)
    means = (0.11, 0.2, 0.28, 0.35, 0.42, 0.49, 0.56, 0.64, 0.73, 0.84)
    own = [
        rates(f"predicted probability {m - 0.03:.3g} to {m + 0.03:.3g} (tenth {k})", 2000, m,
              m + d / 100, 0.03, key="probability", part=k, n_parts=10, lowest=m - 0.03,
              highest=m + 0.03)
        for k, (m, d) in enumerate(zip(means, tenths, strict=True), 1)
    ]  # fmt: skip
    everyone = rates("everyone", 20_000, 0.462, 0.47, 0.01)
    everyone |= {"error": 0.0649, "error_low": 0.0546, "error_high": 0.0769, "slope": 0.62}
    everyone |= {"slope_low": 0.591, "slope_high": 0.649, "off": True, "problem": True}
    ends = {f"{key}_{end}": value for key, low, high in
            (("slope", 0.591, 0.649), ("intercept", -0.02, 0.05), ("observed_expected", 0.99, 1.04))
            for end, value in (("low", low), ("high", high))}  # fmt: skip
    score = {"group": "everyone", "n": 20_000, "n_events": 9400, "slope": 0.62, "intercept": 0.01}
    score |= {"predicted": 0.462, "rate": 0.47, "observed_expected": 1.017, "ici": 0.065}
    score |= {"e_max": 0.12, "auc": 0.66, "brier": 0.24, "scaled_brier": 0.04, "log_loss": 0.67}
    curve = [
        {"probability": m, "rate": r["rate"], "low": r["rate"] - 0.03, "high": r["rate"] + 0.03}
        for m, r in zip(means, own, strict=True)
    ]
    bins = [
        {"group": "everyone", "bin": k, "n": 2000} | one | {"low": one["rate"] - 0.04}
        for k, one in enumerate(curve)
    ]
    tests = {"level": 0.01625, "trend": 1e-13, "bend": 0.11955}
    size = {"error": 0.0649, "low": 0.0546, "high": 0.0769, "measured": 0.0654, "n_bins": 10}
    return nothing() | dict.fromkeys(EMPTY, ()) | {
        "name": "loans.csv",
        "n_samples": 20_000,
        "outcome_kind": "binary",
        "target": "default",
        "tolerance": 0.02,
        "family": deepcopy(FAMILY),
        "groups": [everyone],
        "by_forecast": own,
        "given_forecast": size | {"chance": 0.0078, "is_complete": True, "tests": tests},
        "probability_scores": [score | ends],
        "calibration": curve,
        "reliability": bins,
    }  # fmt: skip


def randomized():
    head = {
        "name": "risk model, randomized",
        "n_draws": 64,
        "is_randomized": True,
        "rounding_step": None,
    }
    return deterministic() | head | {"certificate": deepcopy(CERTIFICATE)}


def nothing():
    lists = {key: [] for key in ("scores", "groups", "scan", "learned", "worst_groups", "notes")}
    head = {
        "schema": "evenhand.audit/1",
        "name": "",
        "n_samples": 1,
        "n_draws": 1,
        "is_randomized": False,
    }
    unknown_error = {"groups": [{"group": "everyone", "n": 1}]}
    return head | lists | unknown_error | {"rounding_step": None, "certificate": None}


def unknown(value, key=""):
    if isinstance(value, dict):
        return {k: unknown(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [unknown(item, key) for item in value]
    kept = {"n_samples", "n_draws", "confidence", "mass", "n", "error", "start", "end", "level"}
    return None if isinstance(value, float) and key not in kept else value


AUDITS = {
    "deterministic": deterministic,
    "randomized": randomized,
    "nothing": nothing,
    "yes_no": yes_no,
    "unknown_randomized": lambda: unknown(randomized()),
}


def pit_of(n_bins, n, tilt):
    """Shares that fall by `tilt` from the first bin to the last, with the band of single trials."""
    even = 1 / n_bins
    reach = 3 * math.sqrt(even * (1 - even) / n)
    share = [even * (1 + tilt * (0.5 - (i + 0.5) / n_bins) * 2) for i in range(n_bins)]
    ends = {"low": max(even - reach, 0.0), "high": even + reach}
    places = [{"start": i / n_bins, "end": (i + 1) / n_bins} for i in range(n_bins)]
    return [place | {"share": one} | ends for place, one in zip(places, share, strict=True)]


def calibration_of(n, tilt):
    """Integral of `pit_of`, with the band of Dvoretzky, Kiefer and Wolfowitz."""
    reach = math.sqrt(math.log(2 / 0.05) / (2 * n))
    curve = []
    for level in [0.05 * k for k in range(1, 20)]:
        observed = level + tilt * level * (1 - level)
        ends = {"low": max(observed - reach, 0.0), "high": min(observed + reach, 1.0)}
        curve.append({"level": level, "observed": observed} | ends)
    return curve


PROVENANCE = {
    "evenhand": "0.2.0",
    "python": "3.11.7",
    "packages": {"numpy": "2.1.0", "scipy": "1.15.1", "scikit-learn": "1.6.1", "pandas": "2.2.3"},
    "command": (
        "evenhand audit table.csv --forecast model --target progression --groups sex,age"
        " --out report.html"
    ),
    "random_state": 0,
    "model": {"name": "model", "kind": "RandomizedRegressor", "sha256": "0f" * 32},
    "data": {"name": "table.csv", "sha256": "a7" * 32, "n_rows": 1500},
    "draws": "drawn fresh for the audit, 64 a row, the same for every person",
}


def full(audit, *, tilt):
    n = audit["n_samples"]
    newer = {"pit": pit_of(10 if n < 500 else 20, n, tilt)}
    newer |= {
        "calibration": calibration_of(n, tilt),
        "plain_intervals": plain_intervals(1.0 if audit["is_randomized"] else 1.8),
    }
    link_bound = "sharp" if audit["is_randomized"] else None
    newer["certificate"] = audit["certificate"] and audit["certificate"] | {
        "link_bound": link_bound
    }
    provenance = deepcopy(PROVENANCE)
    provenance["data"]["n_rows"] = n
    if not audit["is_randomized"]:
        provenance |= {"draws": "none: one forecast per row"}
        provenance["model"]["kind"] = "BoostedDistributionRegressor"
    return audit | newer | {"provenance": provenance}


def full_deterministic():
    return full(deterministic(), tilt=0.35)


def full_randomized():
    return full(randomized(), tilt=0.03)


def many_groups(n=300):
    audit = full_deterministic()
    names = [
        f"postcode={1000 + 7 * i}" if i % 3 else f"age in [{i}, {i + 5}) and sex=f"
        for i in range(n)
    ]
    audit["groups"] += [
        group(
            name,
            31 + i,
            0.02 + 0.0011 * i,
            0.0009 * i if i % 4 else 0.0,
            0.06 + 0.0012 * i,
            bias=i / 90 - 1.5,
        )
        for i, name in enumerate(names)
    ]
    return audit


def no_groups():
    groups = [{"group": "everyone", "n": 1500}]
    return full_deterministic() | {"groups": groups, "scan": [], "learned": [], "certificate": None}


def hostile():
    """Put markup, and what breaks out of attributes, wherever a text comes from data."""
    audit = full_deterministic()
    worse = "\"><svg onload=alert(1)>'</title></text></style>"
    audit |= {"name": EVIL, "notes": [note(EVIL), note(worse)], "target": worse}
    audit["scores"][0] |= {"measure": EVIL, "unit": worse}
    for i, row in enumerate(audit["groups"][1:3] + audit["scan"] + audit["certificate"]["groups"]):
        row["group"] = f"{EVIL if i else worse} {i}"
    for row in audit["scan"] + audit["learned"]:
        row["direction"] = EVIL
    audit["learned"][0]["group"] = EVIL
    audit["learned"][2]["features"] = [EVIL, worse]
    audit["certificate"]["questions"][0] |= {"question": EVIL, "why": worse}
    audit["certificate"] |= {"assumptions": [EVIL], "not_covered": [worse], "method": EVIL}
    audit["provenance"] |= {"command": worse, "draws": EVIL, "packages": {EVIL: worse}}
    audit["provenance"]["model"] = {"name": EVIL, "kind": worse, "sha256": EVIL}
    audit["provenance"]["data"] = {"name": EVIL, "sha256": worse, "n_rows": 3}
    return audit


AUDITS |= {
    "full_deterministic": full_deterministic,
    "full_randomized": full_randomized,
    "many_groups": many_groups,
    "no_groups": no_groups,
    "hostile": hostile,
    "unknown_full": lambda: unknown(full_deterministic()),
}
