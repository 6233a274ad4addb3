"""`audit_parts`: one audit of a table that comes in parts, larger than memory or spread over a cluster."""

from __future__ import annotations

import hashlib
import numbers
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand._progress import waiting
from evenhand._validate import (
    DiscreteOutcomeWarning,
    InputError,
    bad_input,
    check_column,
    check_continuous,
    check_count,
    check_fraction,
)
from evenhand.audits import (
    LEARNED_MASSES,
    MASSES,
    MIN_SIZE,
    Audit,
    Tally,
    TallyPlan,
    audit,
    audit_of,
    check_search,
    one_row_note,
    tally,
)
from evenhand.columns import Groups, Partition, check_names
from evenhand.draws import RandomState, generator
from evenhand.scale.engine import Advance, over_parts
from evenhand.scale.kinds import typed_parts
from evenhand.scale.people import RowSet
from evenhand.scale.sample import Choice, Sample, take_part
from evenhand.scale.subjects import ColumnSubject, ModelSubject, Subject, refusals, searched_columns
from evenhand.scale.survey import SCORES, Survey, SurveyPlan, block_generator, survey_part
from evenhand.search._scan_counts import ScanLayout
from evenhand.tables import Parts, number_column, open_parts

SAMPLE_SIZE = 20_000
LEVELS = (0.8, 0.9)
LEFT_OUT = "part left out: "
"""How the note begins that names a part which could not be used."""


def audit_parts(
    subject: Any,
    table: str | Path | Parts,
    target: str,
    *,
    groups: Sequence[str] = (),
    features: Sequence[str] | None = None,
    id_column: str | None = None,
    cluster: str | None = None,
    masses: Sequence[float] = MASSES,
    learned_masses: Sequence[float] = LEARNED_MASSES,
    levels: Sequence[float] = (),
    min_size: int = MIN_SIZE,
    confidence: float = 0.95,
    sample_size: int = SAMPLE_SIZE,
    client: Any = None,
    skip_bad: bool = False,
    random_state: RandomState = None,
    name: str | None = None,
    verbose: bool = False,
) -> Audit:
    """Audit forecasts of a table in parts, of which no more than a block is in memory at a time.

    Parameters
    ----------
    subject : forecaster or ColumnSubject
        A fitted forecaster, which is asked for forecasts over 64 jittered draws, or the columns
        that hold the forecasts of another model.
    table : path or Parts
        A folder of parquet or csv parts, or one file. Workers of a cluster open it by the same
        path.
    target : str
        Column with the outcomes.
    groups : sequence of str
        Columns that name groups. A column with few values gives one group per value, another its
        halves, cut at the median of the rows chosen at random. Groups and features must be known
        before the outcome; possible leaks are looked for on the rows chosen at random; they are
        named and are no findings.
    features : sequence of str, optional
        Columns that groups are searched in; by default those of the forecaster, or all that are not
        forecasts.
    id_column : str, optional
        Column that names each person; an id that comes twice is refused. It takes some 100 bytes a
        row of memory.
    cluster : str, optional
        Column that names people who have several rows: one row of each, chosen at random, is
        audited. It takes some 100 bytes a row of memory.
    masses, learned_masses, min_size, confidence
        As in `audit`.
    levels : sequence of float
        Probabilities of intervals whose coverage can be certified, besides 0.8 and 0.9.
    sample_size : int, default 20,000
        Rows chosen at random, on which scores are taken and groups are learned and searched with
        the outcomes seen. A table of no more rows is audited in memory.
    client : distributed.Client, optional
        Of a Dask cluster that works on the parts; the findings are those of one process, to the
        last digit.
    skip_bad : bool, default False
        Whether to pass over parts that cannot be used; they are named in the notes.
    random_state : int, generator or None
        Seed of draws, of the rows chosen and of the searches.
    name : str, optional
        What to call the forecaster in what people see.
    verbose : bool, default False
        Whether to show progress on a terminal: parts done, rows per second, time left.

    Returns
    -------
    Audit
        `scores` without those that PITs give, `learned`, the errors of `worst_groups` and
        `examples` are of the rows chosen at random, all else of all rows: see Notes.

    Raises
    ------
    InputError
        If a part, column or value cannot be used, with its file and row; or as `audit` does.

    Notes
    -----
    The table is read three times, the columns needed alone: once to look at the outcomes and at
    what groups are named by, once to take the rows at random and try the forecaster on them, once
    to score. So a bad part is told early.

    PITs are counted in 6400 bins: W1 errors are within 1/12800 = 0.00008 of the exact ones, those
    of scanned groups within 1/128 as in `search.scan_groups`. What is certified stays certain:
    pathwise errors are rounded up, by at most 1/16384. Coverages, shares at or below a level and
    the histogram are exact.

    Sums are kept as whole numbers, so that neither the order of the parts nor who works on them
    changes a digit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from evenhand.tables import write_table
    >>> y = np.random.default_rng(0).normal(size=3000)
    >>> rows = pd.DataFrame({"y": y, "mean": 0.0, "std": 2.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(3):
    ...         write_table(rows[1000 * i : 1000 * (i + 1)], pathlib.Path(folder, f"part-{i}.parquet"))
    ...     subject = ColumnSubject(mean="mean", std="std")
    ...     found = audit_parts(subject, folder, "y", sample_size=500, random_state=0)
    >>> found.n_samples, round(found.score("90% coverage"), 2)
    (3000, 1.0)
    """
    check_count("sample_size", sample_size)
    check_search(masses, learned_masses, min_size, confidence, 2)
    counted = tuple(sorted({*LEVELS, *(check_fraction("level", level) for level in levels)}))
    random = generator(random_state)
    seed = (
        int(random_state)
        if isinstance(random_state, numbers.Integral)
        else int(random.integers(2**32))
    )
    subject = (
        subject if isinstance(subject, ColumnSubject | ModelSubject) else ModelSubject(subject)
    )
    person = id_column if cluster is None else cluster
    parts = table if isinstance(table, Parts) else open_parts(table, skip_bad=skip_bad)
    wanted = _Wanted.of(subject, parts, target, groups, features, (id_column, cluster))
    skipped = dict(parts.skipped) if skip_bad else None
    over = partial(over_parts, parts=parts, client=client, skipped=skipped, verbose=verbose)
    parts = typed_parts(over, parts, wanted.grouping, subject.schema, skipped)
    over = partial(over, parts=parts)
    survey = _survey(over, wanted, parts, skipped, person, seed)
    if survey.people is not None and cluster is None and id_column is not None:
        survey.people.refuse_repeated(parts, id_column)
    kept = survey.people.chosen() if survey.people is not None and cluster is not None else None
    sample = _sample(over, wanted, survey.chosen(kept, sample_size, seed))
    known = _partitions(survey, sample, wanted)
    options = {
        "masses": masses,
        "learned_masses": learned_masses,
        "min_size": min_size,
        "confidence": confidence,
    }
    with waiting(f"searching {len(sample):,} rows", enabled=verbose):
        found = _search(wanted, sample, known, random_state=seed, name=name, **options)
    good = [i for i in sorted(survey.n_rows) if parts.names[i] not in (skipped or {})]
    if sum(survey.n_rows[i] if kept is None else kept[i].size for i in good) > len(sample):
        plan = _tally_plan(wanted, survey, sample, known, counted, found)
        shared = _Scoring(
            wanted, plan, None if kept is None else RowSet.of(kept, survey.n_rows), seed
        )
        total, good = _tallied(over(tally_part, shared, numbers=good, description="scoring"))
        found = audit_of(found, total, plan, confidence=confidence, min_size=min_size)
    notes = [f"{LEFT_OUT}{why}" for _, why in sorted((skipped or {}).items())]
    rows = sum(survey.n_rows[i] for i in good)
    if found.n_samples < rows:
        notes.append(one_row_note(found.n_samples, rows))
    if cluster is not None and found.certificate is not None:
        found = replace(found, certificate=replace(found.certificate, one_row_each=True))
    found = replace(found, notes=(*notes, *found.notes), unseen=survey.unseen)
    return _sourced(found, survey, sample, good, wanted)


@dataclass(frozen=True)
class _Wanted:
    """The columns of an audit, and what each is for."""

    subject: Subject
    source: str
    target: str
    used: tuple[str, ...]
    named: tuple[str, ...]
    searched: tuple[str, ...]
    person: str | None

    @classmethod
    def of(
        cls,
        subject: Subject,
        parts: Parts,
        target: str,
        groups: Sequence[str],
        features: Sequence[str] | None,
        people: Iterable[str | None],
    ) -> Self:
        source = parts.source
        groups = check_names(groups)
        persons = [name for name in people if name is not None]
        for name in (target, *groups, *(features or ()), *persons):
            check_column(name, parts.columns, source)
        used = subject.columns(parts.columns, source)
        for option, names in (("groups", groups), ("features", features or ())):
            if target in names:
                remedy = "groups that outcomes define look wrong in any model"
                raise bad_input(option, "leave out the target", repr(target), remedy)
        apart = {target, *persons}
        own = searched_columns(subject, parts.columns, target, apart, source)
        searched = own if features is None else features
        named = tuple(dict.fromkeys(groups))
        person = next(filter(None, people), None)
        return cls(subject, source, target, tuple(used), named, tuple(searched), person)

    @property
    def grouping(self) -> tuple[str, ...]:
        """Columns that groups are named by or searched in."""
        return tuple(dict.fromkeys((*self.named, *self.searched)))

    @property
    def columns(self) -> list[str]:
        """All of them."""
        return list(dict.fromkeys((self.target, *self.grouping, *self.used)))


def _survey(
    over: Callable[..., Any],
    wanted: _Wanted,
    parts: Parts,
    skipped: dict[str, str] | None,
    person: str | None,
    seed: int,
) -> Survey:
    plan = SurveyPlan(
        wanted.subject, wanted.target, tuple(wanted.columns), wanted.grouping, person, seed
    )
    numbers = [i for i in range(len(parts)) if parts.names[i] not in (skipped or {})]
    surveys = over(survey_part, plan, numbers=numbers, description="reading")
    found: dict[int, Survey] = {i: one for i, one in surveys if one is not None}
    found = {i: one for i, one in found.items() if parts.names[i] not in (skipped or {})}
    if not found:
        raise bad_input(wanted.source, "have at least one row of data", "none")
    # in their order, whichever was done first: where values of two types meet, it tells how they
    # are written
    return Survey.joined([found[i] for i in sorted(found)])


def _sample(over: Callable[..., Any], wanted: _Wanted, rows: dict[int, NDArray[np.intp]]) -> Sample:
    columns = [*wanted.columns, *filter(None, [wanted.person])]
    choice = Choice(wanted.subject, list(dict.fromkeys(columns)), rows)
    numbers = [i for i in rows if rows[i].size]
    return Sample.joined(
        dict(over(take_part, choice, numbers=numbers, description="taking rows")), rows
    )


def _partitions(survey: Survey, sample: Sample, wanted: _Wanted) -> dict[str, Partition]:
    """How columns part the rows; a column that is only searched may have too many values for it."""
    known = {}
    for name in wanted.grouping:
        try:
            known[name] = Partition.learn(
                sample.table[name], name, source=wanted.source, seen=survey.seen[name]
            )
        except InputError:
            if name in wanted.named:
                raise
    return known


def _search(wanted: _Wanted, sample: Sample, known: dict[str, Partition], **options: Any) -> Audit:
    """Audit the rows that were chosen, in memory."""
    table = sample.table
    y = number_column(table, wanted.target, source=wanted.source)
    check_continuous(y, name=f"{wanted.source}: column {wanted.target!r}")
    model_or_forecast, X = wanted.subject.of(table, wanted.source)
    masks = [pair for column in wanted.named for pair in known[column].masks(table[column]).pairs()]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DiscreteOutcomeWarning
        )  # given above, with the column's name
        return audit(
            model_or_forecast,
            X,
            y,
            groups=Groups((group, mask) for group, mask in masks if mask.any()),
            features=table[list(wanted.searched)] if wanted.searched else None,
            target_name=wanted.target,
            **options,
        )


def _tally_plan(
    wanted: _Wanted,
    survey: Survey,
    sample: Sample,
    known: dict[str, Partition],
    levels: tuple[float, ...],
    found: Audit,
) -> TallyPlan:
    # what the outcome may define, on the rows chosen at random, is scanned in no row
    leaked = set(found.leaks["column"])
    searched = [name for name in wanted.searched if name not in leaked]
    scanned = {name: partition for name, partition in known.items() if name not in leaked}
    layout = ScanLayout.planned(sample.table, searched, scanned)
    outcomes = survey.outcomes
    return TallyPlan(
        tuple(known[name] for name in wanted.named),
        layout if layout.is_small and searched else None,
        levels,
        outcomes.spread_step,
        (outcomes.least, outcomes.greatest),
        float(found.groups["bias"].iloc[0]),
    )


@dataclass(frozen=True)
class _Scoring:
    """What scoring a part takes: it goes to every worker."""

    wanted: _Wanted
    plan: TallyPlan
    kept: RowSet | None
    seed: int


def _tallied(tallies: Iterable[tuple[int, Tally | None]]) -> tuple[Tally, list[int]]:
    """Add up as they come, for there may be many; returns which parts there were as well."""
    done = []
    total = None
    for i, one in tallies:
        done.append(i)
        if one is not None:
            total = one if total is None else total + one
    assert total is not None
    return total, sorted(done)


def tally_part(shared: _Scoring, parts: Parts, i: int, advance: Advance) -> Tally | None:
    """Score one part; None if none of its rows are audited."""
    wanted = shared.wanted
    source = parts.names[i]
    total = None
    for block, (start, whole) in enumerate(parts.blocks(i, wanted.columns)):
        table = (
            whole if shared.kept is None else whole.iloc[shared.kept.within(i, start, len(whole))]
        )
        if len(table):
            y = number_column(table, wanted.target, source=source, start=start)
            model_or_forecast, X = wanted.subject.of(table, source, start)
            random = block_generator(shared.seed, SCORES, i, block)
            with refusals(source, start, start + len(whole) - 1):
                found = tally(model_or_forecast, X, y, table, shared.plan, random)
            total = found if total is None else total + found
        advance(len(whole))
    return total


def _sourced(
    found: Audit, survey: Survey, sample: Sample, good: Sequence[int], wanted: _Wanted
) -> Audit:
    """Name examples by ids or by rows in the parts used, and the outcomes by the hash of the hashes of these."""
    ends = dict(zip(good, np.cumsum([survey.n_rows[i] for i in good]).tolist(), strict=True))
    first = {i: end - survey.n_rows[i] for i, end in ends.items()}
    at = found.examples["row"].to_numpy(dtype=np.intp)
    rows = [
        first.get(int(part), 0) + int(row)
        for part, row in zip(sample.part[at], sample.row[at], strict=True)
    ]
    data = {
        "n_rows": sum(survey.n_rows[i] for i in good),
        "n_parts": len(good),
        "n_searched": len(sample),
    }
    digest = hashlib.sha256(b"".join(survey.digests[i] for i in good)).hexdigest()
    known = found.provenance | {"data": found.provenance["data"] | data, "values_sha256": digest}
    examples = found.examples.assign(row=rows)
    if wanted.person is not None:
        examples = examples.assign(id=sample.table[wanted.person].iloc[at].astype(str).to_list())
    return replace(found, examples=examples, provenance=known)
