"""Exact sentences of reports: notes, verdicts and comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from browser.report_examples import (
    deterministic,
    found,
    full_deterministic,
    full_randomized,
    group,
    randomized,
    scanned,
)
from evenhand.report import (
    Measure,
    Note,
    NoteKind,
    difference_in_words,
    findings_of,
    verdict_of,
)


def said(audit: dict[str, Any], *notes: Note) -> list[str]:
    """Return the leading sentence of a verdict and the others."""
    verdict = verdict_of(findings_of(audit, notes))
    return [verdict.lead, *map(str, verdict.sentences)]


NOTES = [
    (Note(NoteKind.PART_LEFT_OUT, reason="a is b"), "part left out: a is b"),
    (Note(NoteKind.ZERO_WEIGHTS, numbers=(1200,)), "rows of weight 0 were left out: 1,200"),
    (
        Note(NoteKind.ONE_ROW_EACH, numbers=(300, 1200)),
        "one row per person is audited, 300 of 1,200 rows; group sizes are shares of people,"
        " not of rows",
    ),
    (Note(NoteKind.EMPTY_GROUP, ("north",)), "group 'north' has no rows left"),
    (
        Note(NoteKind.PROBABLE_GROUPS, ("north", "south")),
        "values from 0 to 1 were read as probabilities of membership: north, south; estimates"
        " weight rows by them, and are those of the group itself if membership is independent of"
        " the outcome, given what the probabilities were computed from; such groups are neither"
        " certified nor scanned",
    ),
    (
        Note(NoteKind.HALVED_FRACTIONS, ("a", "b")),
        "columns of values from 0 to 1 were cut at their median: a, b; if they are probabilities of"
        " membership in a group, pass {'name': values} as groups, or name them in"
        " --group-probabilities",
    ),
    (
        Note(NoteKind.NO_MISCOVERAGE, reason="a is b"),
        "coverage was not estimated by features: a is b",
    ),
    (
        "learned groups, oracle worst groups and the tests of scanned groups count each row"
        " once, whatever its weight",
    ),
    (
        Note(NoteKind.COUNTED_ROWS, numbers=(5000, 1000)),
        "averages, named groups and guarantees use all 5,000 rows; errors of averages and named"
        " groups are computed from binned PITs, within 0.00050 of the exact values",
    ),
    (
        Note(NoteKind.SAMPLED_ROWS, ("scores", "examples"), (600,)),
        "scores, examples use 600 rows sampled at random",
    ),
    (
        Note(NoteKind.ROUNDING_CELLS, numbers=(0.0, 0.3, 1.0, 0.2)),
        "the forecasts are continuous, but 30.0% of the outcomes are 0: PITs are spread over the"
        " cells of rounded outcomes, and rounding may explain up to 20.0% of the average error",
    ),
    (
        Note(NoteKind.TIED_OUTCOMES, numbers=(2.5, 0.3)),
        "the forecasts are continuous, but 30.0% of the outcomes are 2.5, and outcomes lie on no"
        " grid: the PITs of these rows coincide unless their forecasts differ",
    ),
    (
        Note(NoteKind.EVENT_AS_CONTINUOUS),
        "the outcome is 0 or 1, but the forecasts are continuous: audit probabilities of the event"
        " instead, for example Forecast.from_probability(p) or a classifier",
    ),
    (
        Note(NoteKind.EXCLUDED_OUTCOMES, numbers=(1200,)),
        "1,200 outcomes have a probability of 0 under their forecasts, so the log score is"
        " infinite",
    ),
    (
        Note(NoteKind.SCORED_ROWS, numbers=(600,)),
        "scores are computed on 600 rows sampled at random",
    ),
    (
        Note(NoteKind.CUT_OFF_TIMES, numbers=(1200, 3000)),
        "1,200 of 3,000 times are cut off (censored). Tests assume that, given the features, being"
        " cut off is independent of the time of the event. Kaplan-Meier estimates assume that,"
        " within a group, it is independent of the PIT. The least and the largest possible errors"
        " assume nothing",
    ),
    (
        Note(NoteKind.NO_TIME_CUT_OFF),
        "no time is cut off: if people without an observed event were left out of the table, times"
        " seem shorter than they are, and these results are wrong",
    ),
    (
        Note(NoteKind.NO_CERTIFICATE),
        "no certificate: rows with weights are not a sample of the people",
    ),
    (
        Note(NoteKind.TOO_FEW_TO_SCAN, numbers=(150, 120)),
        "no groups were scanned: the scan needs 150 rows, got 120",
    ),
    (
        Note(NoteKind.NO_LARGE_GROUP, numbers=(150,)),
        "no groups were scanned: none has at least 150 rows",
    ),
    (
        Note(NoteKind.ALL_FEATURES_LEAK),
        "no groups were scanned: the outcome may define every feature",
    ),
    (
        Note(NoteKind.COLUMN_NOT_SCANNED, ("id",), reason="too many values"),
        "column 'id' was not scanned: too many values",
    ),
    (
        Note(NoteKind.COLUMN_NOT_LEARNED, ("id",)),
        "column 'id' identifies each row and was not used to learn groups",
    ),
    (
        Note(NoteKind.NOT_LEARNED, numbers=(0.1,), reason="too few rows"),
        "no group of 10% was learned: too few rows",
    ),
    (
        Note(NoteKind.FEATURES, tuple("abcdefghij")),
        "groups were searched in 10 features: a, b, c, d, e, f, g, h and 2 more",
    ),
]


@pytest.mark.parametrize(("note", "sentence"), NOTES)
def test_a_note_is_a_sentence(note: Note, sentence: str) -> None:
    assert str(note) == sentence


def test_every_kind_of_note_has_a_sentence() -> None:
    assert {note.kind for note, _ in NOTES} == set(NoteKind)


def test_the_verdict_on_deterministic_forecasts() -> None:
    assert said(deterministic()) == [
        "A learned group of 20% of people, approximately age > 44 and sex = f (180 rows), is off by"
        " at least 15.2 points, with 95% confidence (estimate 21.4). There, outcomes are lower than"
        " forecast, by 0.62 units of y on average.",
        "Overall, forecasts are too high by 0.13 units of y on average (95% confidence interval"
        " 0.03 to 0.23). Predicted probabilities of all people are off by an estimated 4.1 points"
        " (95% confidence interval 2.0 to 6.2). The 80% prediction interval covers 77.2% of"
        " outcomes overall.",
        "Named group sex=f (740 rows): outcomes are lower than forecast, by 0.31 units of y on"
        " average. The error is at least 4.3 points with 95% confidence, an estimated 9.2.",
        "Group age > 45 and sex = f (420 rows): outcomes are lower than forecast, by 0.81 units of"
        " y on average. The error is an estimated 23.1 points (adjusted p < 0.0001).",
        "Group x0 > 0.5 (700 rows): errors have no single direction; on average outcomes are 0.02"
        " units of y above forecast. The error is an estimated 5.0 points (adjusted p = 0.0100).",
        "In total, 6 of 33 groups are significantly off, with estimates beyond the tolerance; see"
        " the tables.",
        "Groups that were not examined may be off. With one forecast per person, no data can prove"
        " an error below 40 points in every group of 20% of people.",
    ]


def test_the_verdict_on_randomized_forecasts() -> None:
    lead, *_, proof, draws = said(randomized())
    assert lead == said(deterministic())[0]
    assert proof == (
        "In every group of at least 20% of people, predicted probabilities are off by at most 31.4"
        " points. In each of them, the 80% prediction interval covers between 51.4% and 94.5% of"
        " outcomes. Each bound holds with 95% confidence."
    )
    assert draws == (
        "If outcomes are right-skewed, the draw itself raises the mean of the served forecasts."
        " The output of `predict` and the column `mean` do not depend on the draw."
    )
    # the guarantee leads if nothing is known to be off
    calm = randomized() | {"scan": [], "learned": [], "groups": quiet()["groups"]}
    calm["certificate"]["groups"] = []
    lead, _, examined, *_ = said(calm)
    assert lead == proof
    assert examined.startswith("No group is significantly off: 1 named group was examined.")


def test_a_plain_interval_beside_the_bounds_of_a_link() -> None:
    *_, proof, beside, _ = said(full_randomized())
    assert proof == (
        "In every group of at least 20% of people, predicted probabilities are off by at most 31.4"
        " points. In each of them, the 80% prediction interval covers between 51.4% and 94.5% of"
        " outcomes. Both bounds hold jointly with 95% confidence."
    )
    assert beside == (
        "Without a draw, the 95% interval of the deterministic model covers at least 64.5% of"
        " outcomes in the same groups. On average it is 15% narrower than the randomized 80%"
        " interval. It covers 94.6% of outcomes overall, without an upper bound in a group and"
        " without a guarantee for other levels."
    )


def test_lower_bounds_without_a_draw() -> None:
    (floors,) = [one for one in said(full_deterministic()) if one.startswith("Without a draw")]
    assert floors == (
        "Without a draw, only lower bounds of coverage can be proven for every group of at least"
        " 20% of people. Guaranteed there with 95% confidence: 90% interval at least 34.5%, 95%"
        " interval at least 64.5%, 98% interval at least 81.0%, 99% interval at least 88.5%."
    )


def quiet(**more: Any) -> dict[str, Any]:
    """Return an audit in which no group is off."""
    audit = deterministic() | {"scan": [], "learned": [], "certificate": None, "notes": []}
    audit["groups"] = [
        group("everyone", 1500, 0.01, 0.0, 0.03),
        group("sex=f", 740, 0.02, 0.0, 0.05),
    ]
    return audit | more


def test_an_overall_error_is_given_once_and_not_against_the_mean() -> None:
    everyone = group("everyone", 1500, 0.03, 0.01, 0.04, mean_pit=0.48, bias=0.02)
    lead, *others = said(quiet(groups=[everyone]))
    # its lower bound of 1 point is not beyond the tolerance, its estimate of 3 points is
    assert lead == (
        "Over all people, predicted probabilities are off by at least 1.0 points, with 95%"
        " confidence (estimate 3.0). Overall, outcomes rank significantly lower than forecast."
    )
    assert not any("predicted probabilities are off by an estimated" in one for one in others)
    assert sum(one.startswith("The 80% prediction interval covers") for one in others) == 1


@pytest.mark.parametrize(
    ("audit", "notes", "lead"),
    [
        (
            quiet(scan=[scanned("x > 0", 700, 0.01, "as forecast", 0.0, 1.0)]),
            (),
            "No group is significantly off: 1 named group and 1 scanned group were examined. This"
            " does not prove that every group is well calibrated. The error of group sex=f (740"
            " rows) may be as large as 5.0 points.",
        ),
        (
            quiet(learned=[found(0.2, 180, -0.01, 0.0, None)]),
            (),
            "No group is significantly off: 1 named group and 1 learned group were examined. No"
            " groups were scanned; see the notes. This does not prove that every group is well"
            " calibrated. The error of group sex=f (740 rows) may be as large as 5.0 points.",
        ),
        (
            quiet(),
            (),
            "No group is significantly off: 1 named group was examined. No groups were scanned: no"
            " features were given. This does not prove that every group is well calibrated. The"
            " error of group sex=f (740 rows) may be as large as 5.0 points.",
        ),
        (
            quiet(),
            (Note(NoteKind.ALL_FEATURES_LEAK),),
            "No group is significantly off: 1 named group was examined. No groups were scanned: the"
            " outcome may define every feature. This does not prove that every group is well"
            " calibrated. The error of group sex=f (740 rows) may be as large as 5.0 points.",
        ),
        (
            quiet(groups=quiet()["groups"][:1]),
            (),
            "No groups were examined: name groups or pass features.",
        ),
        (
            quiet(groups=[group("everyone", 1500, 0.2, 0.15, 0.3, cover=0.61)]),
            (),
            "Over all people, predicted probabilities are off by at least 15.0 points, with 95%"
            " confidence (estimate 20.0). Overall, intervals are significantly too narrow.",
        ),
    ],
)
def test_the_lead_without_a_group_that_is_off(
    audit: dict[str, Any], notes: tuple[Note, ...], lead: str
) -> None:
    assert said(audit, *notes)[0] == lead


@pytest.mark.parametrize(
    ("n_draws", "sentence"),
    [
        (
            1,
            "Nothing is proven for groups that were not named beforehand, as only one draw per row"
            " is known. Audit several draws per row.",
        ),
        (
            64,
            "Nothing is proven for groups that were not named beforehand; see the notes.",
        ),
    ],
)
def test_the_lack_of_a_guarantee_is_explained(n_draws: int, sentence: str) -> None:
    assert sentence in said(quiet(is_randomized=True, n_draws=n_draws))


def test_possible_leaks_are_explained() -> None:
    leak = {"kind": "group", "name": "sex=f", "column": None, "apart": 0.004}
    rank = {"kind": "feature", "name": "x", "column": "x", "apart": None, "rank_correlation": 0.999}
    audit = quiet(possible_leaks=[leak | {"rank_correlation": None}, rank])
    assert said(audit)[-2:] == [
        "Possible leak: group sex=f may be defined by the outcome: it differs from a range of"
        " outcomes in only 0% of the rows. Unless it was known before the outcome, its errors are"
        " not findings.",
        "Possible leak: feature x may be defined by the outcome: its rank correlation with the"
        " outcome is above 0.99 and above that of the forecasts. Unless it was known before the"
        " outcome, its errors are not findings.",
    ]


NAMES = ("base", "link")


@pytest.mark.parametrize(
    ("measure", "first", "second", "sentence"),
    [
        (Measure("log score"), 1.0, 1.62, "the log score of link is 0.62 nats worse"),
        (Measure("log score"), 1.0, 0.5, "the log score of link is 0.50 nats better"),
        (Measure("log score"), 1.0, 1.004, "the log score of link equals that of base"),
        (Measure("cell log score", 0.01), -1.0, -0.5, "the log score of link is 0.50 nats worse"),
        (Measure("CRPS"), 1.0, 1.2, "CRPS is 20% worse"),
        (Measure("CRPS"), 1.0, 0.8, "CRPS is 20% better"),
        (Measure("CRPS"), 1.0, 1.001, "CRPS is about as large"),
        (Measure("CRPS"), 1.0, 2.13, "CRPS is 2.1 times as large"),
        (Measure("mean std"), 1.0, 1.2, "the predicted std is 20% larger"),
        (Measure("mean std"), 1.0, 0.8, "the predicted std is 20% smaller"),
        (Measure("mean std"), 1.0, 1.0, "the predicted std is about as large"),
        (Measure("mean std"), 0.0, 0.0, "the predicted std is about as large"),
        (Measure("mean std"), 0.0, 1.0, "the predicted std is infinitely larger"),
        (Measure("mean std"), 1.0, np.inf, "the predicted std is infinitely larger"),
        (Measure("mean std"), np.inf, np.inf, "the predicted std is about as large"),
        (Measure("mean std"), 1.0, 2.0, "the predicted std is 2.0 times as large"),
        (Measure("interval width", 0.9), 1.0, 3.26, "prediction intervals are 3.3 times as wide"),
        (Measure("interval width", 0.8), 2.0, 1.0, "prediction intervals are 50% narrower"),
        (
            Measure("coverage", 0.9),
            0.8,
            0.91,
            "90% prediction intervals cover 91.0% of outcomes, up from 80.0%",
        ),
        (
            Measure("coverage", 0.8),
            0.91,
            0.8,
            "80% prediction intervals cover 80.0% of outcomes, down from 91.0%",
        ),
        (
            Measure("coverage", 0.9, "sex = 1"),
            0.8,
            0.8,
            "90% prediction intervals cover 80.0% of outcomes, unchanged",
        ),
        (
            Measure("error"),
            0.031,
            0.012,
            "predicted probabilities are off by 1.2 points, down from 3.1",
        ),
        (
            Measure("error", group="sex = 1"),
            0.031,
            0.31,
            "predicted probabilities are off by 31.0 points, up from 3.1",
        ),
        (
            Measure("error", group="sex = 1"),
            0.031,
            0.0312,
            "predicted probabilities are off by 3.1 points, unchanged",
        ),
        (
            Measure("oracle error", 0.2),
            0.404,
            0.203,
            "predicted probabilities are off by 20.3 points, down from 40.4",
        ),
        (
            Measure("certified error", 0.2),
            0.47,
            0.28,
            "at most 28.0 points in every such group; base: 47.0",
        ),
        (
            Measure("oracle error", 0.8),
            0.121,
            0.116,
            "predicted probabilities are off by 11.6 points, down from 12.1",
        ),
        # a group's name may hold any word
        (
            Measure("error", group="health coverage = no"),
            0.1,
            0.2,
            "predicted probabilities are off by 20.0 points, up from 10.0",
        ),
        (
            Measure("error", group="interval width > 3"),
            0.1,
            0.2,
            "predicted probabilities are off by 20.0 points, up from 10.0",
        ),
        (
            Measure("coverage", 0.9, "mean std"),
            0.8,
            0.9,
            "90% prediction intervals cover 90.0% of outcomes, up from 80.0%",
        ),
    ],
)
def test_a_difference_is_a_sentence(
    measure: Measure, first: float, second: float, sentence: str
) -> None:
    assert difference_in_words(measure, first, second, NAMES) == sentence


def test_a_measure_in_units_of_the_outcome_needs_no_sentence_of_its_own() -> None:
    what: Any = "absolute error"
    assert difference_in_words(Measure(what), 2.0, 1.0, NAMES) == "the value is 50% smaller"


def test_the_confidence_of_a_bound_is_that_of_its_origin() -> None:
    # the certificate holds with 99% confidence, the separate interval of all people with 95%
    certificate = deterministic()["certificate"] | {"confidence": 0.99}
    audit = quiet(certificate=certificate)
    audit["groups"][0] = group("everyone", 1500, 0.2, 0.15, 0.25, mean_pit=0.3)
    assert "by at least 15.0 points, with 95% confidence" in said(audit)[0]
