"""Names of columns with forecasts of another model, and the kind of outcome that they describe."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from evenhand._format import option_name
from evenhand._validate import (
    InputError,
    bad_input,
    check_choice,
    check_column,
    did_you_mean,
    first_names,
)
from evenhand.distributions import OutcomeKind

FORMS = "--mean and --std, --quantiles, --samples, --probability or --pmf"
"""Options for the columns of forecasts, of which one is needed."""

AMOUNTS = "--mean and --std, --quantiles or --samples"
"""Options for forecasts of a continuous outcome, or of the amounts of a hurdle."""

OUTCOMES = tuple(str(kind) for kind in OutcomeKind)
"""Values of `--outcome`."""

SEEN = {
    "probability": OutcomeKind.BINARY,
    "pmf": OutcomeKind.COUNT,
    "chance_of_zero": OutcomeKind.HURDLE,
}
"""Columns from which the kind of outcome is seen."""

DESCRIPTION = {
    OutcomeKind.CONTINUOUS: "continuous outcomes",
    OutcomeKind.COUNT: "counts and scores",
    OutcomeKind.HURDLE: "amounts with zeros",
    OutcomeKind.BINARY: "0/1 outcomes",
}

LEVEL = re.compile(r"(0?\.[0-9]+)$")
VALUE = re.compile(r"_?(-?[0-9]+(?:\.[0-9]+)?)$")
"""End of the name of a column: the level of a quantile, and a value of the outcome."""

NUMBERED = re.compile(r"(.*?)[._-]*[0-9][0-9.]*")
"""Name of a column that ends in a number, after its prefix."""


@dataclass(frozen=True)
class ForecastColumns:
    """Columns that contain forecasts, each as the option of the command that names it.

    Parameters
    ----------
    mean, std : str, optional
        Columns with means and with standard deviations.
    quantiles, samples : str, optional
        Comma-separated columns with quantiles or with samples, or the common prefix of their names.
    sort_quantiles : bool, default False
        Whether to sort quantiles that cross in a row.
    probability : str, optional
        Column with the probability that a 0/1 outcome is 1.
    pmf : str, optional
        Comma-separated columns with the probability of each value of the outcome, or the common
        prefix of their names, which end in the value.
    chance_of_zero : str, optional
        Column with the probability that the outcome is 0; the other columns then describe the
        outcomes above 0.
    outcome : {"continuous", "count", "hurdle", "binary"}, optional
        Kind of outcome, where the columns do not show it: means alone, means with standard
        deviations, and samples describe counts only with `"count"`.

    Examples
    --------
    >>> ForecastColumns(probability="p").outcome_kind("t.csv")
    <OutcomeKind.BINARY: 'binary'>
    """

    mean: str | None = None
    std: str | None = None
    quantiles: str | None = None
    samples: str | None = None
    sort_quantiles: bool = False
    probability: str | None = None
    pmf: str | None = None
    chance_of_zero: str | None = None
    outcome: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """The given columns by option; the chance of zero comes first."""
        options = ("chance_of_zero", "mean", "std", "quantiles", "samples", "probability", "pmf")
        return {name: getattr(self, name) for name in options if getattr(self, name) is not None}

    @property
    def kind(self) -> str:
        """Kind of the columns, such as "mean_std", "quantiles" or "count_mean".

        The prefix "count" is written where the columns alone do not show the kind of outcome.
        """
        is_hidden = self.outcome == OutcomeKind.COUNT and self.pmf is None
        return "_".join((*(["count"] if is_hidden else []), *self.named))

    def outcome_kind(self, source: str) -> OutcomeKind:
        """Return the kind of outcome; raise InputError if the options contradict each other."""
        if self.outcome is not None:
            check_choice("--outcome", self.outcome, OUTCOMES)
        self._check_one_form(source)
        seen = next((SEEN[option] for option in self.named if option in SEEN), None)
        kind = seen or OutcomeKind(self.outcome or OutcomeKind.CONTINUOUS)
        if self.outcome not in (None, kind):
            option = option_name(next(name for name in self.named if name in SEEN))
            raise InputError(
                f"{source}: --outcome {self.outcome} contradicts {option}, which is for"
                f" {DESCRIPTION[kind]}; leave one of them out"
            )
        self._check_complete(kind, seen is None, source)
        return kind

    def _check_one_form(self, source: str) -> None:
        """Refuse several forms of forecasts, or none."""
        normal = self.mean is not None or self.std is not None
        others = ("quantiles", "samples", "probability", "pmf")
        forms = ["mean"] * normal + [name for name in others if getattr(self, name) is not None]
        if not forms and self.chance_of_zero is not None:
            raise InputError(
                f"{source}: --chance-of-zero needs forecasts of the outcomes above 0; add {AMOUNTS}"
            )
        if len(forms) != 1:
            raise InputError(f"{source}: name one kind of columns: {FORMS}")
        if self.chance_of_zero is not None and forms[0] in ("probability", "pmf"):
            raise InputError(
                f"{source}: --chance-of-zero needs forecasts of the outcomes above 0 ({AMOUNTS}),"
                f" not {option_name(forms[0])}; leave one of them out"
            )

    def _check_complete(self, kind: OutcomeKind, is_hidden: bool, source: str) -> None:
        """Refuse columns that do not make a distribution of this kind of outcome."""
        if is_hidden and kind is OutcomeKind.BINARY:
            raise InputError(
                f"{source}: --outcome binary needs --probability, the column with the probability"
                " that the outcome is 1; name it instead"
            )
        if is_hidden and kind is OutcomeKind.HURDLE:
            raise InputError(
                f"{source}: --outcome hurdle needs --chance-of-zero, the column with the"
                " probability that the outcome is 0; add it"
            )
        if kind is OutcomeKind.COUNT and self.quantiles is not None:
            raise InputError(
                f"{source}: --quantiles do not show the probability of each count; name --pmf,"
                " --samples, or --mean (with or without --std) for counts"
            )
        if self.std is not None and self.mean is None:
            raise InputError(f"{source}: --std needs --mean; name both columns")
        # a mean without a standard deviation is a distribution only of counts
        if self.mean is not None and self.std is None and kind is not OutcomeKind.COUNT:
            more = "" if kind is OutcomeKind.HURDLE else ", or add --outcome count if it has counts"
            raise InputError(f"{source}: --mean needs --std; name both columns{more}")

    def by_option(self, present: Iterable[object], source: str) -> dict[str, list[str]]:
        """Return the columns of each option, quantiles by level and probabilities by value.

        Raises InputError if the options contradict each other, or there is no such column.
        """
        self.outcome_kind(source)
        columns = [str(column) for column in present]
        found = {}
        for option, listed in self.named.items():
            if option in ("quantiles", "samples", "pmf"):
                names = _listed(columns, listed, option, source)
            else:
                names = [check_column(listed, columns, source)]
            found[option] = names
        # columns may have any order
        if "quantiles" in found:
            found["quantiles"].sort(key=quantile_level)
        if "pmf" in found:
            found["pmf"] = _by_value(found["pmf"])
        return found


def _listed(present: list[str], listed: str, option: str, source: str) -> list[str]:
    """Return comma-separated columns, or all columns with a common prefix."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    # a single word that is not a column is a prefix
    if len(names) == 1 and names[0] not in present:
        prefix = names[0]
        names = [name for name in present if _has_prefix(name, prefix, option)]
        if not names:
            raise _no_such_prefix(prefix, present, option, source)
    for name in names:
        check_column(name, present, source)
    if len(names) < 2:
        remedy = "separate them by commas, or give the common prefix of their names"
        raise bad_input(option_name(option), "name at least two columns", repr(listed), remedy)
    return names


def _no_such_prefix(prefix: str, present: list[str], option: str, source: str) -> InputError:
    """Return the error for a word that is neither a column nor a prefix of columns."""
    example = "0.5" if option == "quantiles" else "1"
    prefixes = [match.group(1) for name in present if (match := NUMBERED.fullmatch(name))]
    remedy = did_you_mean(prefix, [*present, *prefixes]) or "name some of these, or their prefix"
    return InputError(
        f"{source} has no column {prefix!r} and no columns with this prefix, such as"
        f" {prefix}{example}, only {first_names(present)}; {remedy}"
    )


def _has_prefix(name: str, prefix: str, option: str) -> bool:
    rest = name[len(prefix) :]
    if not name.startswith(prefix):
        return False
    # the rest is the value: other columns may begin with the same letter, as `p_value` with `p`
    if option == "pmf":
        return VALUE.fullmatch(rest) is not None
    return rest[:1] in tuple("0123456789._")


def quantile_level(name: str) -> float:
    """Return the level at the end of the name of a column of quantiles."""
    found = LEVEL.search(name)
    if found is None:
        raise bad_input(
            "--quantiles", "name columns that end in their level, such as q0.05", repr(name)
        )
    return float(found.group(1))


def pmf_value(name: str) -> float:
    """Return the value of the outcome at the end of the name of a column of probabilities.

    Examples
    --------
    >>> [pmf_value(name) for name in ("p0", "p_1", "p-2", "p_-3", "p0.5")]
    [0.0, 1.0, -2.0, -3.0, 0.5]
    """
    found = VALUE.search(name)
    if found is None:
        rule = "name columns that end in a value of the outcome, such as p0 or p_1"
        raise bad_input("--pmf", rule, repr(name))
    return float(found.group(1))


def _by_value(names: list[str]) -> list[str]:
    """Return columns of probabilities by value; refuse two columns for one value."""
    ordered = sorted(names, key=pmf_value)
    for name, after in pairwise(ordered):
        if pmf_value(name) == pmf_value(after):
            got = f"{name!r} and {after!r}"
            raise bad_input("--pmf", "name one column for each value", got, "leave one out")
    return ordered
