"""Forecasts of another model in columns of a table: their names, kind of outcome and values."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import and_more
from evenhand._validate import (
    Floats,
    InputError,
    about,
    bad_input,
    check_choice,
    check_column,
    check_horizon,
    did_you_mean,
    place_of_rows,
    refuse_entry,
    short,
)
from evenhand.distributions import SUM_TOLERANCE, OutcomeKind
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.tables import Schema, as_pandas, number_column, refuse_row

# --- names of columns with forecasts, and the levels, values and times at their ends

NUMBERS = {
    "quantiles": (r"(0?\.[0-9]+)$", "level", "columns that end in their level, such as q0.05"),
    "pmf": (
        r"_?(-?[0-9]+(?:\.[0-9]+)?)$",
        "value",
        "columns that end in a value of the outcome, such as p0 or p_1",
    ),
    "survival": (
        r"[_-]?([0-9]+(?:\.[0-9]+)?)$",
        "time",
        "columns as TIME=COLUMN, such as 30=s30, or by names that end in their time, at least 0",
    ),
}
"""By part: end of the name of a column, what its number is, and the rule for names."""

LISTS = (*NUMBERS, "samples")
"""Parts that list columns."""


def columns_of_part(part: str, listed: str, present: list[str], source: str) -> dict[str, float]:
    """Return the columns that a part of a forecast names, by increasing number; NaN is without one.

    `listed` is a column, or for parts that list columns several ones, separated by commas, or the
    common prefix of their names. Their names end in the number: a level, a value or a time; times
    may also be given as `TIME=COLUMN`.

    Examples
    --------
    >>> columns_of_part("survival", "60=year2,30=year1", ["year1", "year2"], "t.csv")
    {'year1': 30.0, 'year2': 60.0}
    >>> columns_of_part("survival", "s", ["s0.5", "s_2", "sex"], "t.csv")
    {'s0.5': 0.5, 's_2': 2.0}
    >>> columns_of_part("pmf", "p", ["p1", "p_0", "p-2", "p0.5", "p_value"], "t.csv")
    {'p-2': -2.0, 'p_0': 0.0, 'p0.5': 0.5, 'p1': 1.0}
    """
    if part not in LISTS:
        return {check_column(listed, present, source): math.nan}
    items = [item.strip() for item in listed.split(",") if item.strip()]
    is_timed = part == "survival"
    # a single word that is not a column is a prefix
    if len(items) == 1 and items[0] not in present and not (is_timed and "=" in items[0]):
        prefix = items[0]
        items = [name for name in present if _has_prefix(name, prefix, part)]
        if not items:
            raise _no_such_prefix(prefix, present, part, source)
    found = [_number_and_column(item, part, present, source) for item in items]
    if len(found) < (1 if is_timed else 2):
        least = "one column" if is_timed else "two columns"
        remedy = "separate them by commas, or give the common prefix of their names"
        raise bad_input(f"{part}=", f"name at least {least}", short(listed), remedy)
    name, count = Counter(name for _, name in found).most_common(1)[0]
    if count > 1:
        raise bad_input(f"{part}=", "name each column once", short(name), "leave one out")
    if part in NUMBERS:
        found.sort(key=itemgetter(0))
    for (number, name), (after, other) in pairwise(found):
        if number == after:
            rule = f"name one column for each {NUMBERS[part][1]}"
            got = f"{name!r} and {other!r} for {number:g}"
            raise bad_input(f"{part}=", rule, got, "leave one out")
    return {name: number for number, name in found}


def _number_and_column(item: str, part: str, present: list[str], source: str) -> tuple[float, str]:
    """Return the column that an item of a list names, after the number of it; NaN without one."""
    text, sign, name = (word.strip() for word in item.partition("="))
    # a name may contain the sign
    is_given = part == "survival" and sign and item not in present
    name = check_column(name if is_given else item, present, source)
    if part not in NUMBERS:
        return math.nan, name
    pattern, _, rule = NUMBERS[part]
    match = re.search(pattern, item)
    number = _parsed(text if is_given else match[1] if match else "")
    if isinstance(number, str) or not abs(number) < math.inf or (is_given and number < 0):
        raise bad_input(f"{part}=", f"name {rule}", short(item))
    return number, name


def _parsed(text: str) -> float | str:
    """Return a number; the text itself if it is none."""
    try:
        return float(text)
    except ValueError:
        return text


def _no_such_prefix(prefix: str, present: list[str], part: str, source: str) -> InputError:
    """Return the error for a word that is neither a column nor a prefix of columns."""
    example = {"quantiles": "0.5", "survival": "30"}.get(part, "1")
    remedy = did_you_mean(prefix, present) or "name some of these, or their prefix"
    return InputError(
        f"{source} has no column {short(prefix)} and no columns with this prefix, such as"
        f" {prefix[:20]}{example}, only {and_more(present)}; {remedy}"
    )


def _has_prefix(name: str, prefix: str, part: str) -> bool:
    # the rest is the value: other columns may begin with the same letter, as `p_value` with `p`
    rest = NUMBERS[part][0] if part in ("pmf", "survival") else "[0-9._].*"
    return re.fullmatch(re.escape(prefix) + rest, name, re.DOTALL) is not None


ROUNDING = 1e-9
"""Rise of survival probabilities that is no error: curves are computed in floats."""

Values = Mapping[str, Floats]
"""Numbers in columns, shape (n, number of columns), or at their ends, by part."""

PARAMETERS = {
    "mean": "loc",
    "std": "scale",
    "quantiles": "values",
    "samples": "values",
    "pmf": "probabilities",
    "chance_of_zero": "chance",
}
"""Parameters of distributions that parts give, where their names differ."""


# --- names of columns with forecasts of another model, and the kind of outcome that they describe

FORMS = "mean= and std=, quantiles=, samples=, survival=, probability= or pmf="
"""Parts of which a forecast needs one."""

AMOUNTS = "mean= and std=, quantiles= or samples="
"""Parts for a continuous outcome, or for the amounts of a hurdle."""

TIMES = "survival=, quantiles=, samples= or mean= and std="
"""Parts for forecasts of times."""

SEEN = {
    "probability": OutcomeKind.BINARY,
    "pmf": OutcomeKind.COUNT,
    "chance_of_zero": OutcomeKind.HURDLE,
}
"""Columns from which the kind of outcome is seen."""

OTHER_FORMS = ("quantiles", "samples", "survival", "probability", "pmf")
"""Forms of forecasts besides means and standard deviations."""

EXAMPLE = "mean=mu,std=sigma or probability=p"
"""Forecasts as the command takes them."""


@dataclass(frozen=True)
class ForecastColumns:
    """Forecasts of another model, given as columns of the table.

    The columns contain means and standard deviations, quantiles, samples, or probabilities. Text
    names them as `mean=mu,std=sigma`, which `parse` reads and the option `--forecast` takes.

    It is a forecaster that needs no fit: `audit`, `certify`, `randomize`, `RandomizedRegressor` and
    `RecalibratedRegressor` take it as a model whose rows are held out, and `save` keeps it.

    Parameters
    ----------
    mean, std : str, optional
        Columns with means and with standard deviations (> 0). With `outcome="count"`, a mean alone
        is that of a Poisson distribution, and both are those of a negative binomial distribution.
    quantiles : str, optional
        Comma-separated columns with quantiles, whose names end in their levels as in `q0.05`; or
        the common prefix of their names.
    samples : str, optional
        Comma-separated columns with samples of the outcome; or the common prefix of their names.
        With `outcome="count"`, the probability of a count is its share of the samples.
    sort_quantiles : bool, default False
        Whether to sort quantiles that cross in a row.
    probability : str, optional
        Column with the probability that a 0/1 outcome is 1.
    pmf : str, optional
        Comma-separated columns with the probability of each value of the outcome, or the common
        prefix of their names, which end in the value.
    chance_of_zero : str, optional
        Column with the probability that the outcome is 0. The other columns then describe the
        outcome given that it is above 0; a normal distribution is truncated at 0.
    outcome : {"count"}, optional
        Kind of outcome, where the columns do not show it: means alone, means with standard
        deviations, and samples describe counts only with `"count"`.
    survival : str, optional
        Columns with the probability that a time is beyond each of several times: comma-separated,
        each as `TIME=COLUMN` or by a name that ends in the time, or their common prefix. A column
        for time 0 is not used, as everybody survives it.
    horizon : float, optional
        For forecasts of times: time up to which outcomes are followed. The forecasts then have an
        atom there, of the probability that the time is beyond it.
    event : str, optional
        For outcomes that are times: column with 1 where the event was observed, which the command
        reads with them. It is no part of the forecasts.

    Examples
    --------
    >>> str(ForecastColumns.parse("quantiles=q0.1,q0.9,horizon=30"))
    'quantiles=q0.1,q0.9,horizon=30'
    >>> from evenhand import randomize
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"mu": rng.normal(size=500), "sigma": 1.0})
    >>> y = table["mu"] + rng.normal(size=500)
    >>> chosen = randomize(ForecastColumns("mu", "sigma"), table, y, random_state=0)
    >>> chosen.group_error <= 0.3
    True
    >>> chosen.model.forecast(table[:2], r=[0.3, 0.8]).ppf(0.5).shape
    (2,)
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
    event: str | None = None

    @classmethod
    def parse(cls, text: str) -> ForecastColumns:
        """Return the forecasts that a text names.

        Parameters
        ----------
        text : str
            Comma-separated parts PARAMETER=COLUMN, such as `"mean=mu,std=sigma"`; or the same with
            several columns, such as `"quantiles=q0.1,q0.5,q0.9"`, or their common prefix.

        Raises
        ------
        InputError
            If a part has no name of a parameter, is given twice or cannot be read.
        """
        given: dict[str, str] = {}
        parts = [field.name for field in fields(cls)]
        last = ""
        for item in text.split(","):
            name, sign, value = (word.strip() for word in item.partition("="))
            if sign and name in parts:
                if name in given:
                    raise InputError(f"{short(text)} names {name}= twice; leave one out")
                given[name], last = value, name
            elif last in LISTS and item.strip() and not (sign and did_you_mean(name, parts)):
                given[last] += f",{item.strip()}"
            else:
                remedy = did_you_mean(name, parts) or f"write {EXAMPLE}, or one of {FORMS}"
                remedy = f"write {name}=COLUMN" if name in parts else remedy
                rule = "consist of known parts NAME=COLUMN, separated by commas"
                raise bad_input(short(text), rule, short(item), remedy)
            if not given[last]:
                raise InputError(f"{short(text)}: {last}= is empty; name a column after it")
        return cls(**{name: _value(name, value) for name, value in given.items()})

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given |= {"sort_quantiles": "yes" if self.sort_quantiles else None}
        # with all digits, and 30 rather than 30.0
        given |= {"horizon": None if self.horizon is None else str(self.horizon).removesuffix(".0")}
        return ",".join(f"{name}={value}" for name, value in given.items() if value is not None)

    @property
    def named(self) -> dict[str, str]:
        """The given columns by option; the chance of zero comes first."""
        options = ("chance_of_zero", "mean", "std", *OTHER_FORMS)
        return {name: getattr(self, name) for name in options if getattr(self, name) is not None}

    @property
    def is_of_times(self) -> bool:
        """Whether the columns show that the outcome is a time that may be cut off."""
        return self.survival is not None or self.horizon is not None

    def outcome_kind(self, source: str) -> OutcomeKind:
        """Return the kind of outcome; raise InputError if the options contradict each other."""
        if self.outcome not in (None, "count"):
            remedy = (
                "name probability= for 0/1 outcomes, and chance_of_zero= for amounts with zeros"
            )
            raise bad_input("outcome=", "be 'count' or left out", short(self.outcome), remedy)
        shown = next((name for name in self.named if name in SEEN), None)
        hidden = OutcomeKind.CONTINUOUS if self.outcome is None else OutcomeKind.COUNT
        kind = hidden if shown is None else SEEN[shown]
        for trouble in self._troubles(shown, kind):
            raise InputError(f"{source}: {trouble}")
        # who is seen until the horizon has the outcome `horizon`: an atom at the end
        return kind if self.horizon is None else OutcomeKind.HURDLE

    def _troubles(self, shown: str | None, kind: OutcomeKind) -> Iterator[str]:
        """Yield why the columns make no distribution of a kind of outcome, which one may show."""
        normal = self.mean is not None or self.std is not None
        forms = ["mean"] * normal
        forms += [name for name in self.named if name in OTHER_FORMS]
        needed = "chance_of_zero= needs forecasts of the outcomes above 0"
        if not forms and self.chance_of_zero is not None:
            yield f"{needed}; add {AMOUNTS}"
        if len(forms) != 1:
            yield f"name one kind of columns: {FORMS}"
        if self.sort_quantiles and forms[0] != "quantiles":
            yield "sort_quantiles= has no effect without quantiles=; leave it out"
        if self.chance_of_zero is not None and forms[0] in ("survival", "probability", "pmf"):
            yield f"{needed} ({AMOUNTS}), not {forms[0]}=; leave one of them out"
        if self.is_of_times and kind is not OutcomeKind.CONTINUOUS:
            option = "survival=" if self.survival is not None else "horizon="
            other = "outcome=count" if shown is None else f"{shown}="
            yield (
                f"{option} is for times, which {other} does not describe; leave one of them out,"
                f" and name {TIMES}"
            )
        if self.outcome not in (None, kind):
            yield f"outcome=count contradicts {shown}=; leave one of them out"
        if kind is OutcomeKind.COUNT and self.quantiles is not None:
            yield (
                "quantiles= do not show the probability of each count; name pmf=, samples=, or"
                " mean= (with or without std=) for counts"
            )
        if self.std is not None and self.mean is None:
            yield "std= needs mean=; name both columns"

    @property
    def is_mean_alone(self) -> bool:
        """Whether the columns contain means without anything that shows their uncertainty.

        A mean alone is a distribution only of counts. `RecalibratedRegressor` learns the spread of
        others from outcomes, as for any model that predicts numbers.
        """
        is_alone = self.named.keys() - {"chance_of_zero"} == {"mean"}
        return is_alone and self.outcome != OutcomeKind.COUNT

    def by_option(self, present: Iterable[object], source: str) -> dict[str, dict[str, float]]:
        """Return the columns of each option with their levels, values or times.

        Raises InputError if the options contradict each other, or there is no such column.
        """
        self.outcome_kind(source)
        columns = [str(column) for column in present]
        return {
            part: columns_of_part(part, listed, columns, source)
            for part, listed in self.named.items()
        }

    @property
    def inner(self) -> ForecastColumns:
        """These columns: a model may change them, and has them inside."""
        return self

    @property
    def schema(self) -> Schema:
        """Empty: the types of the columns are unknown."""
        return Schema()

    def columns(self, present: Iterable[str], source: str) -> list[str]:
        """Return the columns that contain the forecasts."""
        return [name for names in self.by_option(present, source).values() for name in names]

    def outcome_kind_in(self, table: pd.DataFrame, source: str) -> OutcomeKind:
        """Return the kind of outcome, from the named columns and the option `outcome`."""
        return self.outcome_kind(source)

    def outcome_kind_of(self, y: Floats) -> OutcomeKind:
        """Return the kind of outcome, whatever `y` is."""
        return self.outcome_kind("X")

    def check_outcomes(self, y: Floats, table: pd.DataFrame, *, target: str, source: str) -> None:
        """Refuse outcomes that the forecasts cannot describe.

        `target` is the column with the outcomes. Raises InputError if a 0/1 outcome has another
        value, a count is not a whole number of at least 0, a value is not among those of `pmf=`, or
        an amount with zeros or a time is below 0.
        """
        place = f"{source}: column {target!r}"
        refuse = partial(refuse_row, values=y, place=place)
        kind = self.outcome_kind(source)
        if self.is_mean_alone and np.isin(y, (0.0, 1.0)).all():
            raise InputError(
                f"{place} has only the values 0 and 1, of which mean= alone is no forecast; write"
                f" probability={self.mean}, the column with the probability of 1"
            )
        if self.is_of_times:
            refuse(y < 0, rule="be 0 or above, as it is a time")
            return
        match kind:
            case OutcomeKind.BINARY:
                check_event_values(y, target=target, source=source)
            case OutcomeKind.HURDLE:
                refuse(y < 0, rule="be 0 or above for chance_of_zero=")
            case OutcomeKind.COUNT if self.pmf is not None:
                support = [*self.by_option(table.columns, source)["pmf"].values()]
                rule = f"be one of the values of pmf= ({_values(support)})"
                remedy = "add the column with the probability of this value"
                refuse(~np.isin(y, support), rule=rule, remedy=remedy)
            case OutcomeKind.COUNT:
                # samples of scores may be negative; means are those of counts
                is_possible = (y == np.round(y)) & ((y >= 0) | (self.samples is not None))
                least = "" if self.samples is not None else " of at least 0"
                rule = f"be a whole number{least} for outcome=count"
                refuse(~is_possible, rule=rule)

    def of(self, table: pd.DataFrame, source: str) -> tuple[Forecast, None]:
        """Return the forecasts."""
        kind = self.outcome_kind(source)
        if self.is_mean_alone:
            raise InputError(
                f"{source}: mean= alone shows no uncertainty; name std= too, add outcome=count if"
                " outcomes are counts (Poisson), or name probability= instead if they are 0 or 1;"
                " or let evenhand recalibrate learn the spread from other rows with outcomes"
            )
        columns = self.by_option(table.columns, source)
        if self.survival is not None:
            # everybody survives time 0
            later = {name: time for name, time in columns["survival"].items() if time > 0}
            if not later:
                got = repr(next(iter(columns["survival"])))
                raise bad_input("survival=", "name a column for a time above 0", got)
            columns["survival"] = later
        values = {
            option: np.column_stack([number_column(table, name, source=source) for name in names])
            for option, names in columns.items()
        }
        parameters = {
            name: [*names]
            for option, names in columns.items()
            for name in (option, PARAMETERS.get(option, option))
        }
        # values that make no forecast are refused where forecasts are made
        with about(source, place_of_rows()[1], **parameters):
            if kind is OutcomeKind.BINARY:
                return Forecast.from_probability(values["probability"][:, 0]), None
            numbers = {name: np.array([*found.values()]) for name, found in columns.items()}
            if kind is OutcomeKind.COUNT:
                return _of_counts(values, numbers), None
            return self._with_density(values, numbers), None

    def _with_density(self, values: Values, numbers: Values) -> Forecast:
        """Return forecasts with a continuous part."""
        if self.survival is not None:
            survival = values["survival"]
            falling = np.minimum.accumulate(survival, axis=-1)
            curves = np.where(survival - falling > ROUNDING, survival, falling)
            return Forecast.from_survival(numbers["survival"], curves, self.horizon)
        if self.chance_of_zero is not None:
            for option in {"mean", "quantiles", "samples"} & values.keys():
                rule = "be above 0: forecasts of the outcomes above 0 leave out the zeros"
                refuse_entry(option, values[option], values[option] <= 0, rule)
        if self.quantiles is not None:
            levels, sort = numbers["quantiles"], self.sort_quantiles
            forecast = Forecast.from_quantiles(levels, values["quantiles"], sort=sort)
        elif self.samples is not None:
            forecast = Forecast.from_samples(values["samples"])
        else:
            forecast = Forecast.from_normal(values["mean"][:, 0], values["std"][:, 0])
        if self.chance_of_zero is not None:
            return Forecast.from_hurdle(values["chance_of_zero"][:, 0], forecast)
        if self.horizon is None:
            return forecast
        # times up to a horizon (outcomes: 5)
        chance = 1 - forecast.cdf(self.horizon)
        return Forecast.from_hurdle(chance, forecast, at=self.horizon, end="high")

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        """Return the forecasts in the columns of a table.

        Parameters
        ----------
        X : DataFrame of n rows
            Table with the columns; others are not used.
        r, random_state
            Without effect, as the forecasts are deterministic.

        Returns
        -------
        Forecast

        Raises
        ------
        InputError
            If the columns are missing or contradict each other, or contain no forecast in a row.
        """
        if not hasattr(X, "columns"):
            raise bad_input("X", "be a table with columns of forecasts", type(X).__name__)
        return self.of(as_pandas(X), place_of_rows()[0])[0]

    def predict(self, X: Any) -> Floats:
        """Return the means of the forecasts, shape (n,); they may be all that is known."""
        if self.is_mean_alone:
            return number_column(as_pandas(X), str(self.mean), source=place_of_rows()[0])
        return self.forecast(X).mean()

    def forecast_and_predict(self, X: Any, r: ArrayLike | None) -> tuple[Forecast, Floats]:
        """Return `forecast` and `predict` of the same rows."""
        forecast = self.forecast(X)
        return forecast, forecast.mean()


def _value(name: str, text: str) -> Any:
    """Return the value of a part of a forecast that is no column."""
    if name == "sort_quantiles":
        return check_choice("sort_quantiles=", text, ("yes", "no")) == "yes"
    if name != "horizon":
        return text
    return check_horizon(_parsed(text), "horizon=")


# --- outcomes that forecasts in columns can describe

MOST_VALUES = 8
"""Largest number of values of the outcome that a message lists."""


def check_event_values(y: Floats, *, target: str, source: str) -> None:
    """Refuse values other than 0 and 1; parameters as in `check_outcomes`.

    Examples
    --------
    >>> check_event_values(np.array([0.0, 2.0]), target="bad", source="t.csv")
    Traceback (most recent call last):
    evenhand._validate.InputError: t.csv: column 'bad', row 2 must be 0 or 1, got 2; code the event
    as 1, or drop the row
    """
    remedy = "code the event as 1, or drop the row"
    refuse_row(~np.isin(y, (0.0, 1.0)), y, f"{source}: column {target!r}", "be 0 or 1", remedy)


def _values(support: list[float]) -> str:
    """Return the values of an outcome in words."""
    listed = ", ".join(f"{value:g}" for value in support[:MOST_VALUES])
    return f"{listed}, ..., {support[-1]:g}" if len(support) > MOST_VALUES else listed


# --- forecasts of counts

# with few decimals and many columns, rounding could explain any sum
MOST_ROUNDING = 0.05
"""Largest error of a sum of probabilities that is explained by their rounding."""


def _of_counts(values: Values, numbers: Values) -> Forecast:
    """Return forecasts of counts from probabilities, samples, or moments."""
    if "pmf" in values:
        return Forecast.from_pmf(numbers["pmf"], _with_sum_1(values["pmf"]))
    if "samples" in values:
        samples = values["samples"]
        refuse_entry("samples", samples, samples != np.round(samples), "be a whole number")
        return Forecast.from_samples(samples, kind=OutcomeKind.COUNT)
    mean = values["mean"][:, 0]
    refuse_entry("mean", mean, mean <= 0, "be positive, as it is the mean of a count")
    if "std" not in values:
        return Forecast.from_poisson(mean)
    std = values["std"][:, 0]
    rule = "be above the square root of the mean of the count"
    refuse_entry("std", std, std**2 <= mean, rule, "leave std= out for Poisson distributions")
    return Forecast.from_negative_binomial(mean, (std**2 - mean) / mean**2)


def _with_sum_1(probabilities: Floats) -> Floats:
    """Return probabilities of the values of a count, whose sums may be rounded."""
    total = probabilities.sum(axis=1)
    off = np.abs(total - 1)
    # written with few decimals, each probability is off by up to half a unit of the last one
    decimals = next(
        (d for d in range(16) if (np.round(probabilities, d) == probabilities).all()), 16
    )
    explained = min(probabilities.shape[1] * 0.5 * 10.0**-decimals, MOST_ROUNDING)
    rule = f"add up to 1 over the {probabilities.shape[1]} columns of pmf="
    remedy = "name a column for each possible value, and write probabilities with all digits"
    refuse_entry("pmf", total, off > explained + SUM_TOLERANCE, rule, remedy)
    if (off > SUM_TOLERANCE).any():
        warnings.warn(
            f"probabilities of pmf= are rounded to {decimals} decimals; each row is divided by its"
            " sum",
            stacklevel=2,
        )
    return probabilities / total[:, None]
