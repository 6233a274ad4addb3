"""Golden numbers of certificates of every kind of outcome, of selections, plans and repairs."""

import dataclasses
import functools
import warnings
from enum import StrEnum

import numpy as np
from msgspec import to_builtins

from evenhand import InputError, audit, certify, compare, plan, randomize
from evenhand.audits import Search, judged, parse_condition
from evenhand.audits.result import repair_name
from evenhand.calibration import Cells, count_pits
from evenhand.certificates import (
    Certificate,
    PlainInterval,
    Promise,
    Unions,
    certify_counts,
    certify_events,
    certify_link,
    certify_pit,
    certify_rows,
    count_events,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import jittered
from evenhand.links import Entropic, Gaussian
from evenhand.search import group_test_rows, shift_of
from evenhand.selection.target import largest_alpha
from golden_data import KINDS, QUICK, forecasts_of, found_of, outcomes_of, people
from golden_files import case, counted, shown_numbers

# every import from the package stands here: a refactor may edit these lines, and nothing below them
from parts_examples import searching

ASKED = {
    "average_error": [{}],
    "group_error": [{"mass": mass} for mass in (0.1, 0.2, 0.5, 1.0)],
    "coverage": [{"level": 0.8, "mass": 0.2}, {"level": 0.95, "mass": 0.5}],
    "mpaic": [{"error": 0.1}, {"error": 0.4}],
    "mpaic_curve": [{"errors": [0.0, 0.1, 0.3]}],
    "chain": [{"mass": 0.5}],
    "mean_error": [{}],
    "own_error": [{}],
    "bias": [{"mass": 0.2}, {"mass": 1.0}],
    "event_rate": [{"below": 0.3, "mass": 0.2}, {"above": 0.5, "mass": 0.5}],
    "promise": [{"mass": 0.2}],
    "plain_intervals": [{"mass": 0.5}],
    "named": [{"group": "member"}],
    "named_table": [{}],
    "table": [{}],
    "least_randomized": [{"goal": 0.3, "mass": 0.2}],
    "with_link": [{"link": Gaussian(0.3)}],
    "summary": [{}],
}
"""Methods of certificates, and what they are asked."""

FACTS = (
    *("assumptions", "bound", "bounds_every_group", "has_cells", "is_randomized", "kind", "link"),
    *("method", "n_draws", "n_lost", "n_positive", "n_samples", "not_covered", "one_row_each"),
    *("questions", "unions"),
)
"""Values of certificates; of those that are texts, their number."""

NOT_ASKED = {"accounting_for", "under_shift"}
"""Methods that make certificates, whose bounds other tests hold."""

PARTS = {
    # fields whose values are in answers
    *("at", "choice", "confidence", "events", "everyone", "follow_up", "off_atom", "own"),
    *(
        *("has_draws", "is_rounded", "may_be_unknown", "mass", "ratio", "seed", "thinned"),
        "event_table",
    ),
}


def unasked():
    """Return public members of certificates that no golden number is about."""
    members = {name for name in dir(Certificate) if not name.startswith("_")}
    return (members | set(Certificate.__dataclass_fields__)) - {*ASKED, *FACTS, *NOT_ASKED, *PARTS}


def simple(value):  # noqa: PLR0911
    """Return an answer as values of JSON; of texts, what they count or the numbers in them."""
    if isinstance(value, Certificate):
        return {"link": simple(value.link), "group_error": value.group_error(0.2)}
    if hasattr(value, "alpha") and hasattr(value, "mean_pit"):  # a link
        return [value.name, value.alpha]
    if isinstance(value, PlainInterval):
        return to_builtins(value)
    if isinstance(value, Unions | Promise):
        return value.facts() if isinstance(value, Unions) else value.to_dict()
    if dataclasses.is_dataclass(value):
        return {name: simple(one) for name, one in vars(value).items()}
    if isinstance(value, tuple | list):
        return [simple(one) for one in value]
    return str(value) if isinstance(value, StrEnum) else value


def answers(proof):
    said = {}
    for name in FACTS:
        if hasattr(proof, name):
            value = simple(getattr(proof, name))
            if name in ("assumptions", "not_covered"):
                value = len(value)
            said[name] = value["answered"].to_list() if name == "questions" else value
    for name, questions in ASKED.items():
        if name == "least_randomized" and proof.choice.rule != "simultaneous":
            continue
        is_own = name == "least_randomized"
        method = functools.partial(least_randomized, proof) if is_own else getattr(proof, name)
        found = [answer(method, asked) for asked in questions]
        if name == "summary":
            found = [counted(shown_numbers(found[0]))]
        said[name] = found[0] if len(found) == 1 else found
    if getattr(proof, "follow_up", None) is not None:
        said["follow_up"] = simple(proof.follow_up)
    return said


def answer(method, asked):
    try:
        return simple(method(**asked))
    except InputError:
        return "refused"


def least_randomized(proof, goal, mass):
    kind = type(proof.link)
    alpha = largest_alpha(lambda alpha: proof.with_link(kind(alpha)).group_error(mass), goal)
    if alpha is None:
        raise InputError("no alpha meets the target")
    return proof.with_link(kind(alpha))


N = 400


@functools.cache
def kinds(seed):
    table = people(N, seed)
    return {kind: (forecasts_of(kind, table), outcomes_of(kind, table, seed)) for kind in KINDS}


def served(forecast, m=None):
    r = jittered(N, 1 if m is None else m, random_state=2)
    return forecast.randomized(0.2, "entropic", r[:, 0] if m is None else r)


@case
def certificates_of_kinds(folder):
    """Every answer of the certificate of each kind of outcome, deterministic and randomized."""
    table, said = people(N, 21), {}
    options = {"groups": table[["member"]], "random_state": 0}
    for kind, (forecast, outcomes) in kinds(21).items():
        said[kind] = answers(certify(forecast, table, outcomes, **options))
        if kind != "events":
            drawn = certify(served(forecast, 4), table, outcomes, **options)
            said[f"randomized {kind}"] = answers(drawn)
    person = np.random.default_rng(1).integers(0, 300, N)
    for kind in ("counts", "amounts", "cut times"):
        y = outcomes_of(kind, table, 21, person=person)
        proof = certify(served(kinds(21)[kind][0]), table, y, confidence=0.9, random_state=1)
        said[f"cluster of {kind}"] = answers(proof)
    forecast, outcomes = kinds(21)["cut times"]
    # all are followed until time 36: who entered after 28 is left out
    y = outcomes_of("cut times", table, 21, entered=36.0 - outcomes.y * (1 + outcomes.event))
    said["entered"] = answers(certify(forecast, table, y, random_state=1))
    rounded = kinds(21)["normal"][0], (2 * table["y"]).round() / 2
    with warnings.catch_warnings(action="ignore"):  # rounded outcomes are remarked on
        proof = certify(served(rounded[0], 4), table, rounded[1], random_state=1)
    said["rounded"] = answers(proof)
    return said


@case
def certificates_of_parts(folder):
    """Every answer of certificates from PITs, counts of PITs and events, and of links."""
    u = np.random.default_rng(3).random(600)
    u = np.where(np.arange(600) % 3 == 0, u * u, u)
    link, r = Entropic(0.15), jittered(600, 4, random_state=4)
    c, base = link.ppf(u[:, None], r), Cells(u, link=link)
    p = (np.arange(600) % 7 + 1) / 10
    event = np.random.default_rng(5).random(600) < np.where(np.arange(600) % 2, p, 0.75 * p)
    low, high = np.where(event, 1 - p, 0.0), np.where(event, 1.0, 1 - p)
    cells = Cells(low, high, ties=u)
    events = count_events(p, event)
    proofs = {
        "link around a model": certify_pit(c, r, base=base, random_state=0),
        "counts of a link": certify_counts(
            count_pits(c, r, base=u, random_state=0), is_randomized=True, link=link
        ),
        "events": certify_events(p, event),
        "events of clusters": certify_events(
            p, event, person=np.arange(600) // 2, lost=np.arange(600) % 11 == 0, random_state=0
        ),
        "counted events": certify_counts(events=events, confidence=0.9),
        "PITs of events": certify_rows(
            cells, kind=OutcomeKind.BINARY, event=certify_events(p, event).events, random_state=0
        ),
        "counts of amounts": certify_counts(
            count_pits(cells, random_state=0),
            off_atom=count_pits(c[event], r[event], base=u[event], random_state=0),
            events=events,
            is_randomized=True,
            link=link,
        ),
        "counts of cells": certify_counts(
            count_pits(Cells(0.8 * low, high, ties=u), random_state=0), is_randomized=False
        ),
        "link of few": certify_link(u[:300], link, lost=np.arange(300) % 13 == 0),
    }
    said = {name: answers(proof) for name, proof in proofs.items()}
    plain = certify_pit(u).plain_intervals
    floors = ((0.5, 0.5), (0.7, 0.5), (0.8, 1.0))
    return said | {
        "wider_interval": [
            simple(next((one for one in plain(mass) if one.floor >= floor), None))
            for floor, mass in floors
        ],
        "wider_intervals": simple(plain(0.5)),
    }


def cost(kind):
    """Return a function from people to their forecasts, for models that are not fitted here."""
    return functools.partial(forecasts_of, kind)


@case
def selections_of_kinds(folder):
    """The least certified randomization of each kind of outcome, and what may be paid for it."""
    table, said = people(700, 22), {}
    goals = {"error": {"goal": 0.4}, "wider": {"max_wider": 0.5}}
    for kind in KINDS:
        if kind in ("events", "times"):
            continue
        outcomes = outcomes_of(kind, table, 22)
        for goal, options in goals.items():
            if kind == "scores" and goal == "wider":
                continue
            with warnings.catch_warnings(action="ignore"):
                said[f"{kind} {goal}"] = selected(
                    cost(kind), table, outcomes, **options, random_state=0
                )
    return said


def selected(*given, **options):
    try:
        chosen = randomize(*given, **options)
    except InputError as refusal:
        return {"refused": shown_numbers(str(refusal))}
    names = ("alpha", "price", "limit", "wider", "group_error", "goal")
    names += ("n_learning", "n_certifying", "n_off_atom", "comparison", "rounding_step")
    said = {name: simple(getattr(chosen, name)) for name in names}
    proof = answers(chosen.certificate)
    kept = ("group_error", "average_error", "coverage", "bias", "promise")
    return (
        said
        | {name: proof[name] for name in kept if name in proof}
        | {"summary": counted(shown_numbers(chosen.summary()))}
    )


def plan_values(planned):
    """Return a plan of a guarantee, beside the rows with which a test finds an error."""
    values = planned.to_dict()
    sizes = (1, values.pop("n_groups"))
    assert (values.pop("rate"), values.pop("detectable")) == (None, [])
    tests = [
        {
            "error": error,
            "shift": shift_of(error),
            "power": power,
            "n_groups": n,
            "n_samples": group_test_rows(error, power=power, n_groups=n, min_size=150, level=0.02),
        }
        for error in (0.02, 0.03, 0.05, 0.1)
        for n in sizes
        for power in (0.8, 0.9)
    ]
    return values | {"group_tests": tests}


@case
def plans(folder):
    """Plans of guarantees by each target and link, and the rows that they need."""
    targets = (
        {"goal": 0.3},
        {"goal": 0.4, "group_mass": 0.1, "link": "laplace"},
        {"max_wider": 0.2, "confidence": 0.9},
        {"max_price": 0.05, "link": "gaussian"},
    )
    rows = (200, 10000)
    found = [plan(**target, rows=rows, n_groups=10) for target in targets]
    return {
        "plans": [plan_values(one) for one in found],
        "texts": [counted(shown_numbers(one.summary())) for one in found],
        "rows_needed": [
            plan(0.3, 0.2).rows_needed,
            plan(0.25, 0.5, confidence=0.9, link="laplace").rows_needed,
        ],
    }


KEPT_OF_TIMES = ("scores", "groups", "worst_groups", "plain_intervals")
KEPT_OF_TIMES += ("censoring", "survival", "miscoverage", "outcome_kind", "status")


@case
def audit_times(folder):
    """Audits of times that may be cut off, with and without a horizon, and randomized."""
    table, said = people(500, 23), {}
    features = table[["age", "region", "member"]]
    options = searching(QUICK, learned_masses=(0.5,), masses=(0.2, 1.0), min_size=60)
    options |= {"groups": ["member"], "random_state": 7}
    for kind in ("times", "cut times"):
        outcomes = outcomes_of(kind, table, 23)
        forecast = forecasts_of(kind, table)
        r = jittered(500, 4, random_state=1)
        for name, one in ((kind, forecast), (f"randomized {kind}", forecast.randomized(0.2, r=r))):
            found = audit(one, features, outcomes, **options)
            plain = found_of(found)
            said[name] = {key: plain[key] for key in KEPT_OF_TIMES}
            said[name]["scan"] = found.scan[["group", "n", "error", "p_adjusted"]]
    return said


@functools.cache
def repaired(kind):
    """Return the audit of a kind of outcome, and the model that is repaired on other rows."""
    old, new = people(500, 24), people(500, 25)
    features = old[["age", "region", "member"]]
    outcomes = outcomes_of(kind, old, 24)
    search = Search(masses=(1.0,), learned_masses=(), tolerance=0.0, min_size=120)
    options = {"groups": ["member"], "random_state": 0, "search": search}
    with warnings.catch_warnings(action="ignore"):
        found = audit(forecasts_of(kind, old), features, outcomes, **options)
        model = found.repair(cost(kind), new, outcomes_of(kind, new, 25), random_state=0)
    return found, model


@case
def repairs(folder):
    """Repairs of the groups that an audit of each kind of outcome calls off, and their checks."""
    said, rows = {}, people(8, 26)
    for kind in KINDS:
        found, model = repaired(kind)
        forecast = model.forecast(rows)
        said[kind] = {
            "off": [repair_name(one) for one in found.off],
            "groups": model.groups_,
            "check": model.check_,
            "summary": counted(shown_numbers(model.summary())),
            "ppf": forecast.ppf([0.1, 0.5, 0.9]),
            "cdf": forecast.cdf(2.0),
        }
    return said


@case
def comparisons(folder):
    """Audits before and after a repair, group by group, and conditions of a gate."""
    said, table = {}, people(500, 27)
    for kind in ("normal", "counts", "events"):
        _, model = repaired(kind)
        outcomes = outcomes_of(kind, table, 27)
        options = {"groups": ["member", "region"], "random_state": 0}
        options = searching(options, masses=(1.0,), learned_masses=()) | {
            "features": table[["rooms"]]
        }
        made = compare(forecasts_of(kind, table), model, table, outcomes, **options)
        gates = ("groups_beyond_tolerance > 0", "too-few-rows", "problem")
        kept = ("n_samples", "is_paired", "tolerance", "confidence", "groups", "scores")
        said[kind] = {name: getattr(made, name) for name in kept} | {
            "keys": sorted(made.to_dict()),
            "gates": [[gate_of(gate, one) for gate in gates] for one in made.audits],
        }
    return said


def gate_of(text, found):
    condition = judged(parse_condition(text), found)
    return "refused" if condition.reason else [condition.value, condition.is_true]
