"""The words of the package: terms of the field, and none of a list of words that are not."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

AVOIDED = {
    "surely": "significantly, or with 95% confidence",
    "mend(s|ed|ing)?": "recalibrate, repair",
    # the exception: two keys of stored model folders, which must stay readable
    "laws?(?!_levels|_values)": "distribution",
    "foret(ell|ells|old)": "predict",
    "tells?|told": "report, name, print, distinguish",
    "sa(y|ys|id|ying)": "predict, report, give",
    "h(ang|angs|ung|anging) on": "depend on",
    "reckon(s|ed|ing)?": "compute",
    "kept apart": "held out",
    "com(e|es|ing) along": "bundled",
    "chances": "probabilities",
    r"stated (chances?|probabilit\w+|interval\w*|distribution\w*|std|mean|\d+%)": "predicted",
    r"holds? (an|the|its|their|every|\d+%( of)?|half of( the)?) outcomes?": "cover",
    "in hindsight": "oracle, or after seeing the outcomes",
    "(a |any |each |every |that )?mass( [0-9.]+)? of people": "group size",
    "(of|with) (a |any |each |every |that )mass": "of a group size",
    r"(of|with) mass(?!\()": "of size",
    "plain (wider )?(prediction )?intervals?": "a wider interval without a draw",
    "endless": "unlimited",
    "announced? probabilit(y|ies)": "predicted, or served",
    "(model|base|forecaster) that is right": "calibrated",
    "people must be shown": "(nothing)",
    "(is|are|takes?|needs?) no art": "(nothing)",
    "in (two|three|ten|a hundred) coins": "(nothing)",
    "(by|in) (its|his|her|our|their|your) own words?": "(nothing)",
}
"""Patterns of words, with what is written instead; snake_case names are searched as words."""


SPACED = {words.replace(" ", r"\s+"): instead for words, instead in AVOIDED.items()}
ANY = re.compile(rf"(?<![a-z])({'|'.join(SPACED)})(?![a-z])", re.IGNORECASE)


def found_in(text):
    """Return each avoided word with its line and what to write instead."""
    # a sentence may be broken anywhere, in a comment or between two strings
    joined = re.sub(r"[\"']?\n\s*(#|f?[\"'])?\s*", "\n", text)
    found = []
    for match in ANY.finditer(joined):
        line = joined.count("\n", 0, match.start()) + 1
        instead = next(
            other
            for words, other in SPACED.items()
            if re.match(rf"({words})(?![a-z])", match.group(), re.IGNORECASE)
        )
        found.append(f"line {line}: {match.group()!r}: {instead}")
    return found


def test_an_avoided_word_is_found():
    assert len(found_in("these chances\n    # hang\n    on")) == 2
    assert found_in('law_ = "x"') == ["line 1: 'law': distribution"]
    assert found_in('("the interval holds"\n        f" 80% of outcomes")')
    assert not found_in("lawn, a chance, the bound holds, hang")


READ = [
    path
    for pattern in (
        *("src/evenhand/**/*.py", "src/evenhand/**/*.j2", "src/evenhand/**/*.js"),
        *("src/evenhand/**/*.json", "*.md", "docs/**/*.rst", "docs/**/*.py"),
        *("benchmarks/**/*.py", "benchmarks/**/*.md", "tools/**/*.py", "Makefile"),
    )
    for path in sorted(ROOT.glob(pattern))
    # not pages that builds of the documentation make, nor quoted answers of readers
    if not {"auto_examples", "gen_modules", "_build"} & set(path.parts)
    and path.name not in {"sg_execution_times.rst", "first_screen.md"}
]
"""What is read: the package, pages, gallery, benchmarks and their results."""


def test_words_are_those_of_the_field():
    found = {path: found_in(path.read_text(encoding="utf-8")) for path in READ}
    assert {str(path.relative_to(ROOT)): words for path, words in found.items() if words} == {}
    assert len(found) > 200
