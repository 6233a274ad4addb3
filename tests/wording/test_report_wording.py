"""Exact sentences of reports: notes and comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.report import Measure, Note, NoteKind, difference_in_words

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
        Note(NoteKind.NO_OWN_FORECAST),
        "forecasts are not known, so levels of the forecast cannot be compared",
    ),
    (
        Note(NoteKind.IMPOSSIBLE_OUTCOMES, numbers=(12, 1.0, 1200)),
        "1,200 outcomes have a predicted probability of 0, the first in row 12, where the"
        " probability of the event is 1",
    ),
    (
        Note(NoteKind.SKEWED_RESIDUALS, numbers=(12.06,)),
        "outcome minus forecast is skewed: its sample skewness is 12.1, so intervals of its mean"
        " miss more often than stated, for lognormal errors up to 4 times as often in groups of 100"
        " to 500 rows",
    ),
    (
        Note(NoteKind.NO_THINNING),
        "no groups were found by search and nothing is certified: rows have weights, and the"
        " largest weight of the design is not known; give it in largest_weight or --largest-weight",
    ),
    (
        Note(NoteKind.THINNED, numbers=(300, 1200, 7)),
        "groups found by search and guarantees use 300 of 1,200 rows, drawn with probabilities in"
        " proportion to their weights (seed 7)",
    ),
    (
        Note(NoteKind.FEW_AFTER_THINNING, numbers=(1200, 30)),
        "no groups were found by search: too few of 1,200 rows after thinning, 30 kept",
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
        Note(NoteKind.NO_CERTIFICATE, reason="a is b"),
        "no certificate: a is b",
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
