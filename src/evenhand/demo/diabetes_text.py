"""Text of the demonstration on the small real table."""

from __future__ import annotations

from evenhand._format import (
    at_least,
    at_most,
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
            step(_title(story), _proven(story), width),
            written_text(written, width),
        ]
    )


def _title(story: SmallStory) -> str:
    return (
        f"2. PROVE: for every group of at least {in_full(story.group_size)} of patients, named or"
        " not"
    )


def _found(story: SmallStory) -> str:
    return (
        f"80% intervals cover {estimate(story.coverage)} of outcomes. {story.n_off} of"
        f" {story.n_groups} named groups are significantly off. {story.n_certifying} patients"
        " prove little: a group may be off without being found."
    )


def _proven(story: SmallStory) -> str:
    scores = story.log_score
    worse = scores["randomized"] > scores["without features"]
    verdict = "worse" if worse else "better"
    return (
        f"80% intervals cover {at_least(story.floor, percent)} to"
        f" {at_most(story.ceiling, percent)} of outcomes, and probabilities are off by at most"
        f" {at_most(story.group_error)} points. Price: {percent(story.wider, decimals=0)} wider"
        f" intervals, {nats(story.price)}. The log score of {log_score(scores['randomized'])} is"
        f" {verdict} than that of a forecast without features,"
        f" {log_score(scores['without features'])} (without a draw"
        f" {log_score(scores['as it is'])})."
    )
