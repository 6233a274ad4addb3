"""Result of a calibration audit: rows, and tables, text, page, JSON and repair read off them."""

from __future__ import annotations

import hashlib
import json
import numbers
import platform
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._files import file_digest, link_target, write_text, written
from evenhand._format import Summarized, in_full, one_line
from evenhand._validate import Floats, InputError, Ints, Mask, bad_input
from evenhand.audits.scores import certified_error
from evenhand.calibration import MEASURES, Cells
from evenhand.certificates import Certificate, proof_rows
from evenhand.draws import RandomState, id_text
from evenhand.forecast import Forecast
from evenhand.outcomes import Outcomes, as_outcomes
from evenhand.report import Measure, audit_html, audit_markdown, audit_text
from evenhand.results import AuditRows, Bound, Finding, Note, Row, Unseen, frame, plain
from evenhand.tables import OWN_VALUES, GroupRule, UnseenValues, as_table, guarded

if TYPE_CHECKING:
    from evenhand.forecasters import RecalibratedRegressor


# --- tables as csv files

MARK = "tables.json"
"""File of a folder of tables that lists them, so that only our own files are replaced."""

TABLES_SCHEMA = "evenhand.tables/1"


def _cell(value: Any) -> Any:
    """Return a value as text of a csv file: lists as JSON, formulas after an apostrophe."""
    if isinstance(value, list | tuple):
        return json.dumps(plain(value), ensure_ascii=False)
    return guarded(value)


# --- views that all results have


@dataclass(frozen=True, eq=False, repr=False)
class Result(Summarized):
    """Typed rows of a result, which are its attributes, and the JSON and tables read off them."""

    made: Any

    def __getattr__(self, name: str) -> Any:
        # only for names that are not found otherwise; copies ask for `made` before it is there
        if name == "made" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    def with_rows(self, **rows: Any) -> Self:
        """Return the result with other rows that change no decision."""
        return replace(self, made=msgspec.structs.replace(self.made, **rows))

    @property
    def rows(self) -> Any:
        """All rows, as the JSON has them."""
        return self.made

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, in the layout of the JSON."""
        values: dict[str, Any] = self.rows.to_dict()
        return values

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON; write it to `path` if given."""
        return written(self.rows.to_json(), path)

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write each table as a csv file to a folder.

        The files are named as the tables, for example `groups.csv` and `scores.csv`; `members.csv`
        and `learned_rows.csv` of an audit list rows and ids. Numbers have all digits, unknown
        values are empty, lists are written as JSON, and a text that a spreadsheet would compute,
        such as a name `=1+1`, is written after an apostrophe. The folder is made if it is missing.
        The file `tables.json` lists the files, which a later call replaces; a folder that contains
        anything else, or other tables, is left alone.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        InputError
            If the folder contains files that this method did not write.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from evenhand import audit_pit
        >>> found = audit_pit(np.linspace(0.01, 0.99, 50), random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     names = [path.name for path in found.to_csv(folder)]
        >>> names[:2]
        ['scores.csv', 'groups.csv']
        """
        place, tables = link_target(Path(folder)), self.tables
        paths = [place / f"{name}.csv" for name in tables]
        files = {"schema": TABLES_SCHEMA, "files": [path.name for path in paths]}
        text, mark = json.dumps(files, indent=2) + "\n", place / MARK
        is_own = mark.is_file() and mark.read_bytes() == text.encode()
        if place.exists() and not (is_own or (place.is_dir() and not any(place.iterdir()))):
            raise InputError(
                f"{place} contains other files or is one; use a new or empty folder for tables"
            )
        place.mkdir(parents=True, exist_ok=True)
        # listed first: an interrupted run leaves files that the next run may replace
        write_text(mark, text)
        for path, table in zip(paths, tables.values(), strict=True):
            # pandas writes the shortest text that is read as the same number
            write_text(path, table.map(_cell).to_csv(index=False))
        return paths


# --- row numbers and ids of listed people


def check_people(ids: Any, n: int) -> list[str] | None:
    """Return ids of people as texts; None if none are given."""
    if ids is None:
        return None
    found = list(ids)
    if len(found) != n:
        remedy = "pass the ids of all rows, in their order"
        raise bad_input("ids", f"have one id per row ({n})", len(found), remedy)
    return [id_text(one) for one in found]


# --- versions, command, model, data and draws

PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "pandas": "pandas",
    "torch": "torch",
}
"""Modules by package; versions of those that were loaded are recorded."""


def values_hash(values: Floats) -> str:
    """Return the hash of outcomes or PITs in their order."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").data).hexdigest()


def provenance_of(
    name: str,
    kind: str | None,
    values: Floats,
    random_state: RandomState,
    cells: Cells,
    *,
    is_given: bool,
) -> dict[str, Any]:
    """Return the provenance of an audit made in Python, without a command and files.

    `values` are the given outcomes, or the PITs if only they are known; `is_given` is true if the
    forecasts or PITs were made before the audit.
    """
    from evenhand._version import __version__

    versions = {
        name: str(sys.modules[module].__version__)
        for name, module in PACKAGES.items()
        if module in sys.modules
    }
    # only an integer seed makes an audit repeatable; a generator cannot be recorded
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    m = cells.n_draws
    each = f"{m} draw{'s' * (m > 1)} per row"
    if cells.draws is None:
        # several columns of PITs imply draws, although the caller did not pass them
        draws = f"unknown: {each}" if m > 1 else "none: one forecast per row, without randomization"
    elif is_given:
        draws = f"given with the forecasts: {each}"
    else:
        draws = f"made for this audit: {each}, one at random in each of {m} equal parts of"
        draws += " the range from 0 to 1"
    return {
        "evenhand": __version__,
        "date": str(datetime.now(UTC).date()),
        "python": platform.python_version(),
        "packages": versions,
        "command": None,
        "random_state": int(random_state) if is_seed else None,  # type: ignore[arg-type]
        "model": {"name": name, "kind": kind, "sha256": None},
        "data": {"name": None, "sha256": None, "n_rows": len(values)},
        "values_sha256": values_hash(values),
        "draws": draws,
    }


# --- repair


def _rules(problems: Iterable[Finding], masks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of groups by name, or their masks; groups without either give a warning."""
    rules = {
        repair_name(one): None if one.rule is None else GroupRule.from_state(one.rule)
        for one in problems
    }
    for name in masks:
        if name not in rules:
            rule = "name groups that are a problem in the audit"
            remedy = f"these are: {', '.join(sorted(rules)) or 'none'}"[:200]
            raise bad_input("groups", rule, repr(name), remedy)
    by = {name: masks.get(name, rule) for name, rule in rules.items()}
    without = [name for name, rule in by.items() if rule is None]
    if without:
        listed = ", ".join(map(repr, without))
        warnings.warn(
            f"not repaired, as no rule defines these groups on other rows: {listed}; pass masks of"
            f" the rows of X, such as groups={{{without[0]!r}: mask}}",
            UserWarning,
            stacklevel=3,
        )
    return {name: rule for name, rule in by.items() if rule is not None}


def repair_name(one: Finding) -> str:
    """Return the name of a group in a repair: of groups found by search the rule, or the size."""
    if one.mass is None:
        return one.group
    if one.rule is None:
        return f"learned group of {in_full(one.mass)} of people"
    return GroupRule.from_state(one.rule).name


def _distinct(by: Mapping[str, Any], X: Any, y: ArrayLike) -> dict[str, Any]:
    """Return the groups without rules that select the same rows as a rule before."""
    table = as_table(X, np.size(y), name="X", per="outcome")
    # each group widens the intervals of the check for all others
    found: dict[object, tuple[str, Any]] = {}
    for name, rule in by.items():
        # groups by the forecast are not evaluated, as few have the rows of another
        is_of_table = isinstance(rule, GroupRule) and OWN_VALUES.keys().isdisjoint(rule.columns)
        rows = rule.mask(table).tobytes() if is_of_table else name
        found.setdefault(rows, (name, rule))
    return dict(found.values())


# --- comparisons between groups


def _others(n: int) -> Mask:
    """Mark the pairs of different groups among all pairs, shape (n, n)."""
    return ~np.eye(n, dtype=np.bool_)


def _compared(rows: Mapping[str, tuple[float, float, float]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(dict(rows), orient="index", columns=["value", "low", "high"])


# --- audit


KINDS: dict[str, type[Row]] = {
    name: get_args(kind)[0]
    for name, kind in get_type_hints(AuditRows).items()
    if get_origin(kind) is tuple
}
"""Types of the rows of an audit, by the name of the field that has them."""


class _Table(cached_property[pd.DataFrame]):
    """Rows of an audit as a table, made when it is first read."""

    def __init__(self, field: str) -> None:
        super().__init__(lambda found: frame(getattr(found.made, field), KINDS[field]))


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """Result of a calibration audit: typed rows, and tables, text, page and JSON read off them.

    Everything in `AuditRows` is an attribute here, too. Lists of rows are tables (DataFrames), in
    which unknown numbers are NaN, and columns that are unknown in every row are left out: `scores`,
    `groups` (everyone first), `by_forecast`, `scan`, `learned`, `positive_part`, `worst_groups`,
    `plain_intervals`, `histogram`, `calibration`, `reliability`, `survival`, `miscoverage`,
    `membership`, `probability_scores`, `leaks` and `every_group`.

    Parameters
    ----------
    made : AuditRows
        The rows, without what is proven unless they were read.
    certificate : Certificate or None
        Guarantees; None if there can be none, with the reason in `notes`, or if rows were read.
    places : dict
        Row numbers in the given table of the members of groups that are off, by name, and of groups
        found by search, by size. Empty for groups known by probability, and for tables in parts.
    ids : sequence or dict of int to str, or None
        Ids of the rows of the given table, by their numbers.
    """

    made: AuditRows
    certificate: Certificate | None = None
    places: Mapping[str | float, Ints] = field(default_factory=dict)
    ids: Sequence[str] | Mapping[int, str] | None = None

    scores = _Table("scores")
    groups = _Table("groups")
    by_forecast = _Table("by_forecast")
    scan = _Table("scan")
    learned = _Table("learned")
    positive_part = _Table("positive_part")
    worst_groups = _Table("worst_groups")
    plain_intervals = _Table("plain_intervals")
    histogram = _Table("pit")
    calibration = _Table("calibration")
    reliability = _Table("reliability")
    survival = _Table("survival")
    miscoverage = _Table("miscoverage")
    membership = _Table("membership")
    probability_scores = _Table("probability_scores")
    leaks = _Table("possible_leaks")

    def __repr__(self) -> str:
        return one_line(
            self,
            name=self.name,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            average_error=self.made.groups[0].error,
            groups=len(self.made.named),
            is_certified=self.certificate is not None,
        )

    def certified_by(self, proof: Certificate) -> Audit:
        """Return the audit with another certificate."""
        certified = tuple(
            msgspec.structs.replace(one, certified=plain(certified_error(proof, one.mass)))
            for one in self.made.worst_groups
        )
        return replace(self, certificate=proof).with_rows(worst_groups=certified)

    def with_unseen(self, found: UnseenValues | None) -> Audit:
        """Return the audit with the values that the forecaster's training table had not."""
        if found is None:
            return self
        lines = tuple(Note(kind="UNSEEN", text=line) for line in found.lines())
        rows = tuple(Unseen.of(one) for one in found.records())
        return self.with_rows(unseen=rows, notes=(*lines, *self.made.notes))

    @cached_property
    def rows(self) -> AuditRows:
        """All rows, with what is proven: with many rows these bounds take seconds."""
        # what was proven stays as it was read
        proof = proof_rows(self.certificate) or self.made.certificate
        return msgspec.structs.replace(self.made, certificate=proof)

    @property
    def every_group(self) -> pd.DataFrame:
        """Certified bounds for every group, by group size; empty without a certificate."""
        proof = self.rows.certificate
        return frame(() if proof is None else proof.every_group, Bound)

    def score(self, measure: str | Measure) -> float:
        """Return the value of a measure in `scores`, by its name or as a `Measure`."""
        known = {one.measure: one.value for one in self.made.scores}
        name = str(measure)
        if name not in known:
            raise bad_input("measure", f"be one of {list(known)}", repr(name))
        value = known[name]
        return np.nan if value is None else value

    # --- between groups, as in fairlearn's MetricFrame

    @property
    def overall(self) -> pd.Series[Any]:
        """Measures of all people."""
        return self._measures.iloc[0]

    @property
    def by_group(self) -> pd.DataFrame:
        """Measures of the named groups, by group."""
        return self._measures.iloc[1:]

    @property
    def _measures(self) -> pd.DataFrame:
        table = self.groups.set_index("group")
        return table[[name for name in (*MEASURES, "predicted", "rate") if name in table]]

    def difference(self) -> pd.DataFrame:
        """Return the largest difference of each measure between named groups, with its interval.

        The intervals of a measure hold for all groups at once, so that this one has the same
        confidence. Groups that are too small and possible leaks are left out.

        Returns
        -------
        DataFrame
            By measure: `value`, `low` and `high`.

        Examples
        --------
        >>> from evenhand import audit_pit
        >>> pits = np.concatenate([(np.arange(200) + 0.5) / 200, np.linspace(0.4, 0.6, 200)])
        >>> found = audit_pit(pits, groups={"b": np.arange(400) >= 200, "a": np.arange(400) < 200})
        >>> float(found.difference().loc["coverage_80", "value"].round(2))
        0.2
        """
        found = {}
        for name, (value, low, high) in self._known.items():
            gaps = np.subtract.outer(high, low)[_others(value.size)]
            found[name] = np.ptp(value), max(0.0, -gaps.min()), gaps.max()
        return _compared(found)

    def ratio(self) -> pd.DataFrame:
        """Return the least ratio of each measure between named groups, as `difference` does.

        The bias has no ratio, as it may be negative.
        """
        found = {}
        for name, (value, low, high) in self._known.items():
            if name != "bias":
                others = _others(value.size)
                ratios = np.full(others.shape, np.inf)
                ratios = np.divide(high[:, None], low, out=ratios, where=low > 0)[others]
                ratio = value.min() / value.max() if value.max() > 0 else np.nan
                found[name] = ratio, 1 / ratios.max(), min(ratios.min(), 1.0)
        return _compared(found)

    @property
    def _known(self) -> dict[str, Floats]:
        """Values, lower and upper ends of the groups to compare, by measure, shape (3, groups)."""
        named = [one for one in self.made.named if not (one.possible_leak or one.too_small)]
        found = {}
        for name in MEASURES:
            known = [one.interval(name) for one in named]
            known = [one for one in known if None not in one]
            if len(known) > 1:
                found[name] = np.array(known, dtype=np.float64).T
        return found

    # --- views: text, page, JSON and csv

    def summary(self, *, full: bool = False) -> str:
        """Return the findings as text.

        Parameters
        ----------
        full : bool, default False
            Whether to return all findings and tables; otherwise about 12 lines: the verdict, the
            worst case, others, what was not tested, and what to do next.
        """
        return audit_text(self.rows, full=full)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the findings as one self-contained HTML page; write it to `path` if given.

        The page contains nobody's id; `Audit.members` and `Audit.to_csv` list them.
        """
        return written(audit_html(self.rows), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the findings as Markdown, to paste into a document; write them if asked."""
        return written(audit_markdown(self.rows), path)

    @classmethod
    def read(cls, path: str | Path) -> Audit:
        """Read the JSON of an audit; it has no certificate object and no members of groups.

        Raises
        ------
        InputError
            If the file is not the JSON of an audit; the message names the place.
        """
        try:
            rows = AuditRows.read(Path(path).read_bytes())
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # the place stands last
            why, _, place = str(error).rpartition(" - at ")
            at = f"; at {place}" if why else ""
            raise InputError(
                f"{path} is not the JSON of an audit, which evenhand audit --out FILE.json writes:"
                f" {(why or place)[:150]!r}{at}"
            ) from error
        return cls(rows)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Tables that `to_csv` writes, by name."""
        names = [name for name, kind in vars(Audit).items() if isinstance(kind, _Table)]
        return {
            name: getattr(self, name) for name in (*names, "learned_rows", "members", "every_group")
        }

    # --- groups that are off, their members, and their repair

    @property
    def off(self) -> tuple[Finding, ...]:
        """Groups that are significantly off, each name once; all people are none of them."""
        made, found = self.made, dict[str | float, Finding]()
        for one in (*made.named, *made.scan, *made.by_forecast, *made.learned):
            if one.off:
                found.setdefault(one.mass or one.group, one)
        return tuple(found.values())

    @property
    def members(self) -> pd.DataFrame:
        """Members of the groups that are off: `group`, `mass`, `row` and `id`.

        `mass` is that of a group found by search, `row` the number of the row in the given table,
        counted from 0, and `id` is None if no ids were given. Groups known by probability have no
        members, and audits of tables in parts list none.
        """
        return self._people((one.mass or one.group, repair_name(one), one.mass) for one in self.off)

    @property
    def learned_rows(self) -> pd.DataFrame:
        """Rows of the groups found by search: `mass`, `row` and `id`."""
        masses = [one.mass for one in self.made.learned if one.mass is not None]
        return self._people((mass, "", mass) for mass in masses).drop(columns="group")

    def _people(self, groups: Iterable[tuple[str | float, str, float | None]]) -> pd.DataFrame:
        found = [(name, mass, self.places[key]) for key, name, mass in groups if key in self.places]
        table = pd.DataFrame(found, columns=["group", "mass", "row"])
        table = table.explode("row", ignore_index=True).astype({"mass": float, "row": np.intp})
        ids = [None if self.ids is None else str(self.ids[row]) for row in table["row"]]
        return table.assign(id=pd.Series(ids, dtype=object))

    def repair(
        self,
        model: Any,
        X: Any,
        y: ArrayLike | Outcomes,
        *,
        groups: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
    ) -> RecalibratedRegressor:
        """Recalibrate a fitted model for the groups that are a problem.

        Groups that are significantly off within the tolerance of the audit get no map of their own;
        audit with `tolerance=0` to repair all that are off. Groups by the forecast itself are those
        by the forecast of `model`. Groups with the same rows of `X` are repaired once, under the
        first name. If no group is to be repaired, the result is a single
        map for all rows.

        The rows of the audit were used to choose the groups: pass other rows. The check of the
        repair accounts for the estimation of the maps and for the selection of the groups that need
        a correction, as both are repeated without the rows that are checked. It does not account
        for the choice of the groups by this audit if its rows are passed again; gains of these
        groups are then overestimated. A warning is given if the outcomes are those of the audit.

        Counts, events and outcomes with an atom are repaired by their kind, as the model predicts
        it, and times that may be cut off by the likelihood of what is known; see
        `RecalibratedRegressor`.

        Parameters
        ----------
        model : estimator, forecaster or function
            The audited model, fitted on other rows. It is not fitted again.
        X : DataFrame or array-like of shape (n, n_features)
            Rows that neither the model nor the audit has seen, with the columns of the groups.
        y : array-like of shape (n,) or Outcomes
            Outcomes, of times that may be cut off with their events, and the horizon of the audit.
        groups : dict of str to array of bool, optional
            Masks of these rows for groups that no rule defines: groups that were given to the audit
            as masks, and learned groups without a rule. Without a mask they are not repaired, with
            a warning that names them.
        random_state : int, generator or None
            Seed of the folds of the check.

        Returns
        -------
        RecalibratedRegressor
            Fitted; `check_` and `summary()` report for each group whether the repair helped.
        """
        if isinstance(model, Forecast):
            remedy = "pass the model, or a function from X to its forecasts"
            raise bad_input("model", "be a fitted model or a function", "a Forecast", remedy)
        # imported here: few audits are followed by a repair, and forecasters import scikit-learn
        from sklearn.frozen import FrozenEstimator

        from evenhand.forecasters import RecalibratedRegressor

        outcomes = as_outcomes(y, X)
        # of many groups by features the first ones have rules
        listed = (
            one
            for one in (*self.off, *(one for one in self.made.positive_part if one.rule))
            if one.rule or one.mass or one.group in self.places or not one.features
        )
        by = _rules([one for one in listed if one.problem], groups or {})
        by = _distinct(by, X, outcomes.value)
        # a fitted model is not fitted again: all rows are held-out rows
        is_estimator = hasattr(model, "fit") and not isinstance(model, FrozenEstimator)
        frozen = FrozenEstimator(model) if is_estimator else model
        unfitted = RecalibratedRegressor(frozen, by=by or None, random_state=random_state)
        repaired = unfitted.fit(X, outcomes)
        if self.provenance.get("values_sha256") == values_hash(outcomes.value):
            warnings.warn(
                "X and y are the rows of this audit, which chose the groups by them: the check of"
                " the repair overestimates its gains; pass other rows",
                UserWarning,
                stacklevel=2,
            )
        return repaired


# --- sources of an audit


def renumbered(found: Audit, numbers: Ints) -> Audit:
    """Number members of groups by `numbers`, those of the audited rows."""
    places = {key: numbers[rows] for key, rows in found.places.items()}
    ids = None if found.ids is None else dict(zip(numbers.tolist(), found.ids, strict=True))
    return replace(found, places=places, ids=ids)


def with_sources(
    found: Audit,
    *,
    command: str | None = None,
    model: Path | None = None,
    model_sha256: str | None = None,
    data: Path | None = None,
    n_rows: int | None = None,
) -> Audit:
    """Add to an audit the command that made it, and the hashes of model and table.

    `model` is a folder; a model that is not saved yet has the hash `model_sha256`. A folder of
    parts as `data` gets no hash. If not all rows of a table were audited, `n_rows` is their number.
    """
    known = found.made.provenance
    table: dict[str, Any] = {} if n_rows is None else {"n_rows": n_rows}
    if data is not None:
        table |= {"name": _readable(data.name), "sha256": file_digest(data)}
    manifest = None if model is None else model / "model.json"
    if manifest is not None:
        # the hash of a model folder covers the hashes of all its files
        has_seal = manifest.is_file()
        model_sha256 = str(json.loads(manifest.read_text())["sha256"]) if has_seal else None
    sources = {
        "command": None if command is None else _readable(command),
        "model": known["model"] | {"sha256": model_sha256},
        "data": known["data"] | table,
    }
    return found.with_rows(provenance=known | sources)


def _readable(text: str) -> str:
    """Return text that can be written to a file; names of files may contain any bytes."""
    return text.encode(errors="replace").decode()
