"""Names of columns with forecasts of another model, and the kind of outcome that they describe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenhand._format import option_name
from evenhand._validate import InputError, check_choice, check_column
from evenhand.distributions import OutcomeKind
from evenhand.scale.column_names import by_value, listed_columns, quantile_level, survival_times

FORMS = "--mean and --std, --quantiles, --samples, --survival, --probability or --pmf"
"""Options for the columns of forecasts, of which one is needed."""

AMOUNTS = "--mean and --std, --quantiles or --samples"
"""Options for forecasts of a continuous outcome, or of the amounts of a hurdle."""

TIMES = "--survival, --quantiles, --samples or --mean and --std"
"""Options for forecasts of times."""

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

OTHER_FORMS = ("quantiles", "samples", "survival", "probability", "pmf")
"""Forms of forecasts besides means and standard deviations."""


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
    survival : str, optional
        Columns with the probability that a time is beyond each of several times: comma-separated,
        each as `TIME=COLUMN` or by a name that ends in the time, or their common prefix.
    horizon : float, optional
        For forecasts of times: time up to which outcomes are followed. The forecasts then have an
        atom there, of the probability that the time is beyond it.

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
    survival: str | None = None
    horizon: float | None = None

    @property
    def named(self) -> dict[str, str]:
        """The given columns by option; the chance of zero comes first."""
        options = ("chance_of_zero", "mean", "std", *OTHER_FORMS)
        return {name: getattr(self, name) for name in options if getattr(self, name) is not None}

    @property
    def is_of_times(self) -> bool:
        """Whether the columns show that the outcome is a time that may be cut off."""
        return self.survival is not None or self.horizon is not None

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
        if self.is_of_times:
            return self._kind_of_times(source)
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

    def times(self, present: Iterable[object], source: str) -> list[float] | None:
        """Return the times of survival probabilities; None for forecasts of another form."""
        if self.survival is None:
            return None
        names = [str(column) for column in present]
        return list(survival_times(self.survival, names, source).values())

    def _kind_of_times(self, source: str) -> OutcomeKind:
        """Return the kind of a forecast of times; raise InputError if it is of other outcomes."""
        option = "--survival" if self.survival is not None else "--horizon"
        others = [name for name in self.named if name in SEEN]
        if others or self.outcome not in (None, OutcomeKind.CONTINUOUS):
            other = option_name(others[0]) if others else f"--outcome {self.outcome}"
            raise InputError(
                f"{source}: {option} is for times, which {other} does not describe; leave one of"
                f" them out, and name {TIMES}"
            )
        self._check_complete(OutcomeKind.CONTINUOUS, True, source)
        # who is seen until the horizon has the outcome `horizon`: an atom at the end
        return OutcomeKind.CONTINUOUS if self.horizon is None else OutcomeKind.HURDLE

    def _check_one_form(self, source: str) -> None:
        """Refuse several forms of forecasts, or none."""
        normal = self.mean is not None or self.std is not None
        forms = ["mean"] * normal
        forms += [name for name in OTHER_FORMS if getattr(self, name) is not None]
        if not forms and self.chance_of_zero is not None:
            raise InputError(
                f"{source}: --chance-of-zero needs forecasts of the outcomes above 0; add {AMOUNTS}"
            )
        if len(forms) != 1:
            raise InputError(f"{source}: name one kind of columns: {FORMS}")
        if self.chance_of_zero is not None and forms[0] in ("survival", "probability", "pmf"):
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
        """Return the columns of each option, by level, by value or by time.

        Raises InputError if the options contradict each other, or there is no such column.
        """
        self.outcome_kind(source)
        columns = [str(column) for column in present]
        found = {}
        for option, listed in self.named.items():
            if option == "survival":
                names = list(survival_times(listed, columns, source))
            elif option in ("quantiles", "samples", "pmf"):
                names = listed_columns(columns, listed, option, source)
            else:
                names = [check_column(listed, columns, source)]
            found[option] = names
        # columns may have any order
        if "quantiles" in found:
            found["quantiles"].sort(key=quantile_level)
        if "pmf" in found:
            found["pmf"] = by_value(found["pmf"])
        return found
