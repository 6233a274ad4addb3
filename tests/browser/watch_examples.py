"""Values of watches, made by hand: what their page is shown to do without a watch being run."""

import math
import random
from datetime import date, timedelta

HIGHER, LOWER, NARROW, WIDE = "higher", "lower", "narrow", "wide"
EVIL = "<script>alert(1)</script>"
FIRST = date(2026, 1, 5)
PROMISE_LIMIT = math.log(1 / 0.0125)


def group_limit(n):
    return math.log(n / 0.02)


def days(n):
    return [(FIRST + timedelta(days=i)).isoformat() for i in range(n)]


def quiet_path(n, seed, spread=0.35):
    walk, level = random.Random(seed), -0.3
    path = []
    for day in range(1, n + 1):
        level = max(level + walk.gauss(-0.05, spread), -math.log(day + 1) - 0.5)
        level = min(level, 2.6 - 0.03 * seed)
        path.append(level)
    return path


def broken_path(n, seed, start, slope):
    walk = random.Random(seed)
    path = quiet_path(n, seed)
    for day in range(start, n):
        path[day] = path[day - 1] + walk.gauss(slope, 0.4)
    return path


def test_of(part, group, direction, path, limit):
    return {
        "part": part,
        "group": group,
        "direction": direction,
        "log_evidence": path,
        "threshold": limit,
    }


def group_row(name, n, error, direction, path, limit):
    return {
        "name": name,
        "n": n,
        "n_missing": n // 23,
        "error": error,
        "bias_direction": direction,
        "log_evidence": path[-1],
        "max_log_evidence": max(path),
        "threshold": limit,
        "is_alarm": max(path) >= limit,
        "since_start": True,
    }


def alarm_of(test, since, dates):
    path = test["log_evidence"]
    place = next(i for i, value in enumerate(path) if value >= test["threshold"])
    return {
        "part": test["part"],
        "group": test["group"],
        "direction": test["direction"],
        "date": dates[place],
        "since": dates[since],
        "log_evidence": path[place],
        "threshold": test["threshold"],
        "n_rows": 50 * (place + 1),
        "max_log_evidence": max(path),
    }


def settings(**changes):
    return {
        "false_alarm": 0.05,
        "tolerance": 0.02,
        "period": "day",
        "matures_after_days": 30.0,
        "groups": ["sex", "age", "region"],
        "kind": "pit",
        "mass": 0.2,
        "target": 0.3,
        "statistic": "mean_pit",
        "link": "entropic",
        "alpha": 0.12,
        "confidence": 0.95,
        "atom": None,
    } | changes


NAMES = ["sex = woman", "sex = man", "age > 60", "region = north", "first visit"]


def watch(n=200, names=None, n_rows=None):
    names = NAMES if names is None else names
    dates = days(n)
    limit = group_limit(len(names))
    sides = [quiet_path(n, seed) for seed in (1, 2)]
    paths = [quiet_path(n, 10 + i) for i in range(len(names))]
    draws = quiet_path(n, 3, 0.2)
    rows = 50 * n if n_rows is None else n_rows
    ways = (HIGHER, LOWER, NARROW, WIDE)
    tests = [
        *(
            test_of("promise", None, way, path, PROMISE_LIMIT)
            for way, path in zip((HIGHER, LOWER), sides, strict=True)
        ),
        *(
            test_of("group", name, ways[i % 4], path, limit)
            for i, (name, path) in enumerate(zip(names, paths, strict=True))
        ),
        test_of("draws", None, HIGHER, draws, math.log(100)),
    ]
    missing = rows // 25
    return {
        "schema": "evenhand.watch/1",
        "status": "no alarm",
        "settings": settings(),
        "first": dates[0],
        "until": dates[-1],
        "n_periods": n,
        "n_rows": rows,
        "n_missing": missing,
        "n_late": missing // 4,
        "n_waiting": 1489,
        "n_repeated": 0,
        "days_90": None,
        "alarms": [],
        "notices": [],
        "dates": dates,
        "tests": tests,
        "promise": {
            "estimate": 0.2614,
            "best_case": 0.2533,
            "worst_case": 0.2891,
            "log_evidence": max(sides[0][-1], sides[1][-1]),
            "max_log_evidence": max(max(one) for one in sides),
            "threshold": PROMISE_LIMIT,
        },
        "groups": [
            group_row(name, rows // (i + 2), 0.008 + 0.004 * (i % 4), ways[i % 4], path, limit)
            for i, (name, path) in enumerate(zip(names, paths, strict=True))
        ],
        "draws": {
            "n": rows,
            "n_repeated": 12,
            "error": 0.0041,
            "log_evidence": draws[-1],
            "max_log_evidence": max(draws),
            "threshold": math.log(100),
            "is_alarm": False,
        },
        "sources": {
            "log": "decisions.sqlite",
            "contexts": ["loans 2026"],
            "model_sha256": "a3" * 32,
            "key": "5f2b90c1",
            "certificate": "model",
            "n_entries": 2 * rows + 1,
            "head_sha256": "0c" * 32,
            "evenhand": "0.1.0",
            "command": "evenhand watch decisions.sqlite --certificate model --matures-after 30d",
        },
    }


def raise_alarm(values, place, since, slope, seed=5):
    test = values["tests"][place]
    test["log_evidence"] = broken_path(len(values["dates"]), seed, since + 2, slope)
    values["alarms"].append(alarm_of(test, since, values["dates"]))
    values["status"] = "alarm"
    path = test["log_evidence"]
    found = {"log_evidence": path[-1], "max_log_evidence": max(path)}
    if test["part"] == "promise":
        values["promise"] |= found | {"estimate": 0.331, "best_case": 0.325, "worst_case": 0.352}
    elif test["part"] == "group":
        (row,) = (one for one in values["groups"] if one["name"] == test["group"])
        row |= found | {"is_alarm": True, "error": 0.071, "bias_direction": test["direction"]}
    else:
        values["draws"] |= found | {"is_alarm": True, "error": 0.061}


def quiet():
    return watch()


def alarm():
    values = watch(320)
    raise_alarm(values, 0, 232, 0.7)
    raise_alarm(values, 4, 250, 0.5, seed=8)
    values["notices"] = [
        {
            "part": "promise",
            "group": None,
            "direction": HIGHER,
            "date": values["dates"][221],
            "since": values["dates"][214],
            "log_evidence": PROMISE_LIMIT + 0.02,
            "threshold": PROMISE_LIMIT,
            "n_rows": 11_100,
        }
    ]
    return values


def years():
    values = watch(1000)
    raise_alarm(values, 1, 820, 0.35)
    return values


def many():
    regions = [
        f"region {i // 4 + 1} and age in [{20 * (i % 4)}, {20 * (i % 4) + 20})" for i in range(60)
    ]
    values = watch(365, regions)
    raise_alarm(values, 20, 200, 0.3)
    return values


def events():
    """Return a watch of 0/1 outcomes, which have no draws."""
    values = watch(120, NAMES[:2])
    values["settings"] = settings(
        statistic="bias", link=None, alpha=None, target=0.08, matures_after_days=365.0, kind="event"
    )
    values["draws"] = None
    values["tests"] = [test for test in values["tests"] if test["part"] != "draws"]
    values["promise"] |= {"estimate": 0.031, "best_case": 0.018, "worst_case": 0.049}
    return values


def empty():
    """Return a watch before anything matured."""
    values = watch(1, n_rows=0)
    for key in ("dates", "tests", "groups"):
        values[key] = []
    values |= {"status": "no rows yet", "first": None, "until": None, "n_periods": 0}
    values |= {"promise": None, "draws": None, "n_waiting": 214}
    return values


def hostile():
    values = watch(60, [EVIL, "a\x1b[31m & b", "\u202eright to left", "x" * 400])
    raise_alarm(values, 2, 20, 0.8)
    values["sources"]["contexts"] = [EVIL]
    values["sources"]["log"] = "</script><img src=x onerror=alert(1)>"
    return values


WATCHES = {made.__name__: made for made in (quiet, alarm, years, many, events, empty, hostile)}
