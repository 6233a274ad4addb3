"""Assumptions, limits and questions of certificates, by keys; their texts stand in `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.distributions import OutcomeKind

if TYPE_CHECKING:
    from evenhand.certificates.certificate import Certificate, FollowUp


def assumption_keys(proof: Certificate) -> list[str]:
    """Return the keys of `ASSUMED` that apply."""
    if proof.everyone is None:
        return ["sample", "fixed event", *_sample_keys(proof)]
    choice, is_link = proof.choice, proof._link_bounds is not None
    fixed = "fixed"
    if choice.rule == "tested":
        fixed = "fixed models" if choice.n_links == 1 else "fixed links"
    elif (is_link and proof.follow_up is None) or choice.rule == "simultaneous":
        fixed = "fixed base"
    keys = ["sample", fixed, *(["draws"] if proof.is_randomized else [])]
    served = proof.own.gaps is not None or proof.has_cells or proof.own.n_draws > 1
    if fixed == "fixed base" and choice.rule == "fixed" and served:
        keys.append("fixed link" if proof.at is None else "fixed hurdle link")
    if proof.is_rounded:
        keys.append("rounded")
    if proof.at is not None or (proof.has_cells and not proof.is_rounded):
        keys.append("ties")
    keys += [] if proof.has_draws else ["own draws"]
    keys += ["counted"] if proof.own.levels is not None else []
    follow_up = proof.follow_up
    keys += ["horizon"] if follow_up is not None and follow_up.horizon is not None else []
    keys += ["entry"] if follow_up is not None and follow_up.has_entry else []
    return [*keys, *_sample_keys(proof)]


def _sample_keys(proof: Certificate) -> list[str]:
    return [*(["design"] if proof.thinned else []), *(["ratio"] if proof.ratio > 1 else [])]


def limit_keys(proof: Certificate) -> list[str]:
    """Return the keys of `NOT_COVERED` that apply."""
    keys = ["shift" if proof.ratio == 1 else "larger shift"]
    follow_up = proof.follow_up
    if proof.at is not None:
        keys += (["after draws"] if proof.is_randomized else []) + ["smaller"]
        keys.append("atom" if follow_up is None else "by horizon")
    elif follow_up is not None and proof.bounds_every_group:
        keys += ["after draws", "smaller"]
    elif proof.events is not None:
        keys.append("smaller")
    elif follow_up is None:
        keys += ["after draws", "smaller"] if proof.is_randomized else []
        if proof.kind is OutcomeKind.CONTINUOUS and not proof.has_cells:
            keys.append("discrete")
        elif proof.kind is OutcomeKind.COUNT and proof.is_randomized:
            keys.append("mean probabilities")
    if follow_up is not None and follow_up.horizon is not None:
        keys.append("beyond horizon")
    keys += ["shares of rows"] if proof.one_row_each else []
    if proof.choice.rule != "fixed" and proof.at is not None:
        keys.append("chosen overall")
    elif proof.choice.rule != "fixed" and proof.everyone is not None and proof.everyone.groups:
        keys.append("chosen named")
    return keys


Answer = tuple[str, bool, str]

ON_AVERAGE: list[Answer] = [("average", True, "one PIT"), ("named", True, "one PIT each")]


def question_keys(proof: Certificate) -> list[Answer]:
    """Return the questions about a forecaster, whether they are answered, and why."""
    follow_up = proof.follow_up
    average = ON_AVERAGE
    if follow_up is not None:
        average = [(question, known, "lost on average") for question, known, _ in average]
    events: list[Answer] = [
        ("low forecasts", True, "event rate"),
        ("every group", False, "binary"),
        ("each person", False, "each person"),
    ]
    if proof.kind is OutcomeKind.BINARY:
        return [*average, *events]
    is_answered = proof.link is not None or proof.own.n_draws > 1
    error = coverage = "one draw"
    if is_answered:
        error = coverage = "link" if proof.link is not None else "several"
    elif not proof.is_randomized:
        # with one forecast per person the floor is that of the lowest outcomes, as for counts:
        # times are compared up to the horizon only
        is_point = proof.kind is not OutcomeKind.COUNT and (follow_up is None or proof.at)
        error, coverage = "one forecast" if is_point else "one forecast of counts", "floor"
    every: list[Answer] = [
        ("every group", is_answered, error),
        ("coverage", is_answered, coverage),
        ("after draws", False, "after draws"),
    ]
    if follow_up is not None and follow_up.n_lost:
        events, every = (_with_lost(rows, follow_up) for rows in (events, every))
    if proof.at is None:
        return [*average, *every]
    whether, among = ("whether", "among") if follow_up is None else ("whether by", "among by")
    return [
        *average,
        *((f"{whether}: {question}", known, why) for question, known, why in events),
        *((f"{among}: {question}", known, why) for question, known, why in every),
    ]


def _with_lost(rows: list[Answer], follow_up: FollowUp) -> list[Answer]:
    """Return questions about every group of a size, of people of whom some are lost."""
    if follow_up.horizon is not None:
        return [(text, known, f"{why}; worst" if known else why) for text, known, why in rows]
    # the first question is that of the error
    return [
        (text, False, why if i and not known else "no horizon")
        for i, (text, known, why) in enumerate(rows)
    ]
