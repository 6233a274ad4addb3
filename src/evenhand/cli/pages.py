"""What the help page of each subcommand adds to its options: step, guide and examples."""

from __future__ import annotations

from dataclasses import dataclass

STORY = (
    "Shows for whom the uncertainty of a model is wrong, repairs it and, where someone needs it,"
    " proves that it is right for every group, named or not."
)

LOOK = "First look"
AUDIT = "1. Audit: for whom is it wrong?"
REPAIR = "2. Repair: recalibrate by group"
PROVE = "3. Prove: every group, named or not"
TRAIN = "Train and serve a model of your own"

STEPS = (LOOK, AUDIT, REPAIR, PROVE, TRAIN)
"""Panels of commands, in the order of the work."""


@dataclass(frozen=True)
class Example:
    """A command line with the purpose that it serves."""

    purpose: str
    line: str


@dataclass(frozen=True)
class Page:
    """What a help page adds to the options of a command.

    Parameters
    ----------
    step : str
        Panel of the command in the help of `evenhand`, one of `STEPS`.
    summary : str
        What the command does, in a few words for the list of commands.
    guide : str
        File of the documentation.
    examples : tuple of Example
        Two to five calls; the tables of all of them have the same columns.
    """

    step: str
    summary: str
    guide: str
    examples: tuple[Example, ...]


START = (
    Example("Try it on a generated table", "evenhand demo"),
    Example(
        "Audit forecasts in columns of your own table",
        "evenhand audit test.csv --mean mu --std sigma --target loss",
    ),
)

PAGES: dict[str, Page] = {
    "demo": Page(
        LOOK,
        "Find, repair and prove on a generated table",
        "docs/tutorial.rst",
        (
            Example("Run all steps and write the results to evenhand-demo", "evenhand demo"),
            Example("Write to another folder", "evenhand demo --out first-look --seed 1"),
        ),
    ),
    "audit": Page(
        AUDIT,
        "Audit a model, or forecasts in columns of a table",
        "docs/audit.rst",
        (
            Example(
                "Audit forecasts in columns of a table, by groups of people",
                "evenhand audit test.csv --mean mu --std sigma --target loss --groups sex,job"
                " --out report.html",
            ),
            Example(
                "Audit a model that evenhand fit has written",
                "evenhand audit model test.csv --target loss --groups sex",
            ),
            Example(
                "Exit with code 1 if any group is off by more than the tolerance",
                "evenhand audit test.csv --mean mu --std sigma --target loss"
                ' --fail-if "groups_beyond_tolerance > 0"',
            ),
            Example(
                "Audit predicted probabilities of a 0/1 outcome",
                "evenhand audit test.csv --probability p --target default --groups sex",
            ),
            Example(
                "Audit predicted survival probabilities; who has no event yet stays in the table",
                'evenhand audit test.csv --survival "30=s30,60=s60" --target days --event died'
                " --horizon 60 --groups sex",
            ),
        ),
    ),
    "compare": Page(
        AUDIT,
        "Compare two audits of the same rows",
        "docs/compare.rst",
        (
            Example("Show which groups got better or worse", "evenhand compare old.json new.json"),
            Example(
                "Write a page, and exit with code 1 if a group got worse",
                "evenhand compare old.json new.json --out compare.html --fail-if-worse",
            ),
        ),
    ),
    "recalibrate": Page(
        REPAIR,
        "Recalibrate forecasts by group, without a draw",
        "docs/repair.rst",
        (
            Example(
                "Estimate maps for each sex from rows with outcomes",
                "evenhand recalibrate past.csv --mean mu --std sigma --target loss --by sex"
                " --out maps",
            ),
            Example(
                "Apply the maps to new rows",
                "evenhand recalibrate new.csv --mean mu --std sigma --id person --maps maps"
                " --out recalibrated.csv",
            ),
            Example(
                "Estimate maps for groups that overlap",
                "evenhand recalibrate past.csv --mean mu --std sigma --target loss"
                ' --group "older women=sex = 2 and age > 60" --group "cooks=job = cook"'
                " --out overlapping-maps",
            ),
        ),
    ),
    "plan": Page(
        PROVE,
        "Plan a guarantee: rows, width and price",
        "docs/plan.rst",
        (
            Example("Plan the usual guarantee for several numbers of rows", "evenhand plan"),
            Example(
                "What can be proven with 1,000 rows if intervals may be 20% wider?",
                "evenhand plan --max-wider 0.2 --rows 1000",
            ),
        ),
    ),
    "randomize": Page(
        PROVE,
        "Certify forecasts with the least randomization",
        "docs/randomize.rst",
        (
            Example(
                "Certify the least randomization on rows with outcomes",
                "evenhand randomize past.csv --mean mu --std sigma --target loss --id person"
                " --out proof",
            ),
            Example(
                "Randomize new rows with it; each person keeps one draw",
                "evenhand randomize new.csv --mean mu --std sigma --id person --key-file draws.key"
                " --certificate proof --out served.csv",
            ),
            Example(
                "Certify predicted survival probabilities up to a horizon of 365 days",
                "evenhand randomize past.csv --survival s --target days --event died --horizon 365"
                " --entered admission --id person --out survival-proof",
            ),
        ),
    ),
    "fit": Page(
        TRAIN,
        "Train a model, randomized and certified if asked",
        "docs/train.rst",
        (
            Example(
                "Train on a table of features and outcomes",
                "evenhand fit train.csv --target loss --id person --out model",
            ),
            Example(
                "Hold out people and certify at most 40 points of error in every group",
                "evenhand fit train.csv --target loss --id person --max-group-error 0.4"
                " --out certified-model",
            ),
            Example(
                "Predict the probability of a 0/1 outcome",
                "evenhand fit loans.csv --target default --outcome binary --id person --out events",
            ),
        ),
    ),
    "predict": Page(
        TRAIN,
        "Write forecasts of a fitted model for new people",
        "docs/train.rst",
        (
            Example(
                "Write the forecast of each person",
                "evenhand predict model new.csv --id person --out forecasts.csv",
            ),
            Example(
                "Add each forecast to a decision log before it is written",
                "evenhand predict model new.csv --id person --key-file draws.key"
                " --context 2026-11 --log log.sqlite --out forecasts.csv",
            ),
            Example(
                "Write forecasts of a randomized model; repeated runs give the same",
                "evenhand predict certified-model new.csv --id person --key-file draws.key"
                " --out served.csv",
            ),
        ),
    ),
    "outcomes": Page(
        TRAIN,
        "Record outcomes of logged forecasts",
        "docs/replay.rst",
        (
            Example(
                "Record outcomes by the ids of forecasts that predict --log has written",
                "evenhand outcomes log.sqlite paid.csv --id forecast_id --target loss",
            ),
            Example(
                "Record outcomes by the ids of people",
                "evenhand outcomes log.sqlite paid.csv --id person --target loss"
                " --context 2026-11 --key-file draws.key",
            ),
        ),
    ),
    "replay": Page(
        TRAIN,
        "Compute a logged forecast again and compare",
        "docs/replay.rst",
        (
            Example(
                "Compare a forecast with the model, the key and the row of the person",
                "evenhand replay log.sqlite FORECAST_ID --model model"
                " --key-file draws.key --features new.csv --id person",
            ),
            Example(
                "Check draw, model and key without the features",
                "evenhand replay log.sqlite FORECAST_ID --model model"
                " --key-file draws.key --person 17",
            ),
        ),
    ),
    "watch": Page(
        TRAIN,
        "Watch whether a promise still holds in service",
        "docs/watch.rst",
        (
            Example(
                "Watch the served model's promise, and each group that the log has",
                "evenhand watch decisions.sqlite --certificate model --horizon 365d"
                " --out watch.html",
            ),
            Example(
                "Continue every day from a state, and exit with code 1 if there is an alarm",
                "evenhand watch decisions.sqlite --certificate model --horizon 365d"
                " --state watch.json --fail-if-alarm",
            ),
            Example(
                "Watch two groups by week, without a certificate",
                "evenhand watch decisions.sqlite --groups sex,region --horizon 6w --period week",
            ),
        ),
    ),
}
"""Pages of all subcommands, in the order of the help."""
