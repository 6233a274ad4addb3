"""Exact sentences of certificates; other tests check their facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand._validate import InputError
from evenhand.calibration import count_pits
from evenhand.certificates import (
    FixedSequenceCertificate,
    LinkBase,
    certify_counts,
    certify_link,
    certify_pit,
)
from evenhand.draws import jittered
from evenhand.links import Entropic

R = jittered(20, 4, random_state=0)
HALF = np.arange(20) < 10
TARGET = FixedSequenceCertificate(target=0.3, mass=0.2, confidence=0.9, n_people=50)

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: certify_pit(R, R, sample_weight=np.ones(20)),
        "certificates do not accept sample_weight: weighted rows are not a sample of the people; if"
        " the weights are known and at most W times their mean, certify without them and read the"
        " bounds at mass / W",
    ),
    (
        lambda: certify_pit(R, R, method="betting"),
        "method='betting' bounds a single group size, and mass is None; give one, such as mass=0.2",
    ),
    (
        lambda: certify_pit(R, R, mass=0.2),
        "mass is for method='betting' only, got mass=0.2 with method='local-levels'; leave it out:"
        " these bounds hold for every mass",
    ),
    (
        lambda: certify_pit(R, R, method="betting", mass=0.2).group_error(0.3),
        "mass must be 0.2, the single mass of this betting certificate, got 0.3; use"
        " method='local-levels' for bounds at all masses",
    ),
    (
        lambda: certify_pit(R).mpaic(0.1),
        "mPAIC compares PITs with their draws, and these PITs have no draws; give r",
    ),
    (
        lambda: certify_pit(R, R).named("a"),
        "group 'a' has no bound: these rows were certified without named groups; name groups in"
        " certify_pit(..., groups=...)",
    ),
    (
        lambda: certify_pit(R, R, groups={"half": HALF}).named("a"),
        "group must be one of ['half'], got 'a'",
    ),
    (
        lambda: certify_pit(R, R).accounting_for(TARGET),
        "choice must have the confidence of the certificate (0.95), got 0.9",
    ),
    (
        lambda: certify_counts(count_pits(R, R), is_randomized=False),
        "is_randomized must be True for counts of several draws or of known draws, got False; for a"
        " deterministic forecaster, count its one column of PITs without r",
    ),
    (
        lambda: certify_counts(
            count_pits(R, groups={"a": R[:, 0] > 1}).groups["a"], is_randomized=True
        ),
        "counts must contain at least one person, got none",
    ),
    (
        lambda: certify_counts(count_pits(R), is_randomized=True).coverage(0.5, 0.2),
        "level must be one of the counted levels (0.8, 0.9), got 0.5; count the rows again with"
        " this level in count_pits(..., levels=...)",
    ),
    (
        lambda: certify_link(R, Entropic(0.1)),
        "pit must have one PIT per row, got shape (20, 4); links wrap a deterministic forecaster;"
        " certify a randomized one with certify_pit",
    ),
    (
        lambda: TARGET.mpaic(0.1),
        "mPAIC was not tested in the sequence of models, so it has no bound here; certify the"
        " chosen model on other rows with certify_pit",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_messages(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value) == sentence


def test_too_few_rows() -> None:
    proof = certify_link(np.random.default_rng(4).uniform(size=40), Entropic(0.1))
    with pytest.raises(InputError) as refusal:
        proof.least_randomized(0.3, 0.2, certify_share=0.5)
    assert str(refusal.value) == (
        "a group error of at most 30 points cannot be certified for groups of 20% of people on 40"
        " rows: about 52 certification rows suffice (110 in all if 50% of them certify), at a price"
        " of 2.0 nats of log score; use more rows or allow a larger error"
    )


def test_too_few_rows_whatever_their_number() -> None:
    proof = certify_link(np.tile([0.0, 0.5, 1.0], 100), Entropic(0.1))
    with pytest.raises(InputError) as refusal:
        proof.least_randomized(0.3, 0.2)
    assert str(refusal.value) == (
        "a group error of at most 30 points cannot be certified for groups of 20% of people on 300"
        " rows, nor on 200,000 such rows; allow a larger error, or recalibrate the model first (in"
        " Python: recalibrate=True)"
    )


PERFECT = "Errors are means over all probability levels: 0 points is perfect, 50 the worst."
AFTER_DRAWS = (
    "Cannot be answered: is it calibrated for groups formed after the draws? Such groups can select"
    " people by their draws."
)
SAMPLE = (
    "Assumes: the rows are a random sample of the population to which the certificate applies,"
    " exchangeable and independent of each other; "
)
FIXED = (
    "the forecaster, its recalibration and its randomization were fixed without using these rows; "
)
DRAWS = "each draw is uniform on [0, 1] and independent of the person and of other people's draws"
SHIFT = (
    "changes over time or in the population after these rows were collected, unless the density of"
    " features and outcomes is at most k times the old one, which these rows cannot show: then"
    " bounds for every group of size 1/k hold for all new people"
)
NOT_COVERED = (
    f"Does not cover: {SHIFT}; groups formed after seeing the draws, such as the people who were"
    " approved; groups smaller than the size for which a bound is given; outcomes that are not"
    " continuous"
)
EVERY_GROUP = (
    "- in every group of at least {} of people, by at most {} points; the 80% prediction interval"
    " covers {} to {} of outcomes"
)


def test_summary_of_a_randomized_forecaster() -> None:
    certificate = certify_pit(R, groups={"half": HALF}, cluster=np.arange(20), random_state=0)
    assert certificate.summary().splitlines() == [
        "With 95% confidence, from 20 people, 4 draws each:",
        "- overall, predicted probabilities are off by at most 32.9 points",
        "- in group 'half' (10 rows), by 0.1 to 46.0 points",
        "- in every group of at least 10% of people: nothing is proven",
        "- in every group of at least 20% of people: nothing is proven",
        EVERY_GROUP.format("50%", "28.6", "26.4%", "100.0%"),
        "One row per person was used: group sizes are shares of people, not of rows.",
        PERFECT,
        AFTER_DRAWS,
        SAMPLE
        + FIXED
        + DRAWS
        + "; the draws, which were not given, were made separately for each person, one in each of"
        " as many equal cells of [0, 1].",
        NOT_COVERED
        + "; groups measured by their share of the rows: one row per person was used, so group"
        " sizes are shares of people.",
    ]


def test_summary_of_a_deterministic_forecaster() -> None:
    certificate = certify_counts(count_pits(R[:, 0]), is_randomized=False)
    why = (
        "With one forecast per person and uniform PITs, no bound below (1 - size) / 2 can be"
        " certified, which is 0.4 for a fifth of the people: no rows can rule out that features"
        " define the group of the people with the lowest PITs."
    )
    floor = (
        "A floor only: a group contains at most all people whom an interval misses, so the share"
        " that it misses in the group is at most the share that it misses among all people, divided"
        " by the size of the group; see coverage."
    )
    assert certificate.summary().splitlines() == [
        "With 95% confidence, from 20 people, one deterministic forecast each:",
        "- overall, predicted probabilities are off by at most 45.6 points",
        "- without a draw, in every group of at least 20% of people, the 99% interval covers at"
        " least 1.6% of outcomes; there is no upper bound",
        PERFECT,
        f"Cannot be answered: is it calibrated for every group of a given size? {why}",
        "Cannot be answered: do prediction intervals have their nominal coverage in every group of"
        f" a given size? {floor}",
        AFTER_DRAWS,
        SAMPLE
        + FIXED
        + "pathwise errors and gaps |PIT - r| were rounded up to bins of width 1/16384 and"
        " 1/8192, which only widens the bounds.",
        f"Does not cover: {SHIFT}; outcomes that are not continuous.",
    ]


def test_summary_of_a_choice_on_the_same_people() -> None:
    links = certify_link(R[:, 0], Entropic(0.1))
    certificate = certify_pit(R, R, groups={"half": HALF}, random_state=0).accounting_for(links)
    lines = certificate.summary().splitlines()
    assert lines[0] == (
        "With 95% confidence, from 20 people, 4 draws each, under Entropic(alpha=0.1):"
    )
    assert lines[6:8] == [
        "The bounds for all people and for every group are computed from the PITs of the"
        " deterministic forecaster inside the link (pathwise bound) and hold jointly.",
        "Bounds for every group account for the choice of the randomization on these people.",
    ]
    assert lines[-1] == (
        f"{NOT_COVERED}; the choice of the randomization on these same people, in the bounds for"
        " named groups."
    )


def test_summary_of_a_link_that_was_fixed_before() -> None:
    link = Entropic(0.1)
    certificate = certify_pit(R, R, base=LinkBase(R[:, 0], link), random_state=0)
    assert certificate.summary().splitlines()[-2] == (
        f"{SAMPLE}the deterministic forecaster was fixed without using these rows; {DRAWS}; the"
        " link was fixed without using these rows, for the bounds of named groups and of mPAIC."
    )


def test_summary_of_all_links() -> None:
    lines = certify_link(R[:, 0], Entropic(0.1)).summary().splitlines()
    assert lines[0] == "With 95% confidence, from 20 people, under Entropic(alpha=0.1):"
    assert lines[-4:] == [
        "These bounds hold simultaneously for every link and alpha, so both may be chosen on the"
        " same people.",
        "The bound for group errors is the pathwise one.",
        f"{SAMPLE}the deterministic forecaster was fixed without using these rows; {DRAWS}.",
        f"{NOT_COVERED}.",
    ]


def test_summary_of_models_tested_in_a_fixed_order() -> None:
    lines = TARGET.summary().splitlines()
    assert lines[0] == (
        "With 90% confidence, from 50 people, on whom the models were tested in a fixed order:"
    )
    assert lines[-2] == (
        f"{SAMPLE}the models and their order were fixed without using these rows; {DRAWS}."
    )
