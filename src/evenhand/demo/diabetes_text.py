"""Text of the demonstration on the small real table."""

from __future__ import annotations

from evenhand._format import (
    at_least,
    at_most,
    confidence_in_full,
    in_full,
    log_score,
    nats,
    percent,
)
from evenhand._table import wrapped
from evenhand.demo.result import SmallStory, Written
from evenhand.demo.shared_text import estimate, step, written_text


def diabetes_text(story: SmallStory, written: Written, width: int) -> str:
    """Return the demonstration as text of a given width, then the files."""
    setting = (
        "Progression of diabetes after one year, a real table bundled with scikit-learn. A linear"
        f" model was trained on {story.n_training} patients; {story.n_certifying} were held out."
    )
    return "\n\n".join(
        [
            wrapped(setting, width),
            step("1. FIND: audit the model", _found(story), width),
            step("2. PROVE: the randomized model", _proven(story), width),
            written_text(written, width),
        ]
    )


def _found(story: SmallStory) -> str:
    return (
        f"80% intervals cover {estimate(story.coverage)} of outcomes. {story.n_off} of"
        f" {story.n_groups} named groups and {story.n_scanned_off} of {story.n_scanned} scanned"
        f" groups are significantly off. {story.n_certifying} patients prove little: a group may"
        " be off and not be found."
    )


def _proven(story: SmallStory) -> str:
    scores = story.log_score
    return (
        f"With {confidence_in_full(0.95)} confidence, in every group of at least"
        f" {in_full(story.group_size)} of patients: predicted probabilities are off by at most"
        f" {at_most(story.group_error)} points, and 80% intervals cover"
        f" {at_least(story.floor, percent)} to {at_most(story.ceiling, percent)} of outcomes."
        f" Price: {nats(story.price)} and {percent(story.wider, decimals=0)} wider intervals."
        f" Log score: {log_score(scores['randomized'])}, against {log_score(scores['as it is'])}"
        f" without a draw and {log_score(scores['without features'])} without features."
    )
