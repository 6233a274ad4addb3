"""Audits of tables in parts, which may be larger than memory or processed on a cluster."""

from __future__ import annotations

import hashlib
import numbers
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add, itemgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._progress import waiting
from evenhand._validate import (
    DiscreteOutcomeWarning,
    InputError,
    Ints,
    about,
    check_column,
    check_count,
    check_fraction,
    check_outcomes,
    coded,
)
from evenhand.audits import (
    STANDARD,
    Audit,
    CountPlan,
    RowCounts,
    Search,
    audited,
    check_about,
    count_rows,
    forecast_of,
    renumbered,
)
from evenhand.calibration import total
from evenhand.certificates import WIDER_LEVELS
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator, sampled_rows
from evenhand.outcomes import Rounding
from evenhand.report import NoteKind, note
from evenhand.scale.engine import over_parts, typed_parts
from evenhand.scale.rows import People, Subject, as_subject, refusals, searched_columns
from evenhand.tables import (
    Groups,
    Partition,
    Parts,
    Seen,
    UnseenValues,
    check_names,
    id_column,
    number_column,
    open_parts,
    repeated_id,
)

# --- columns that an audit of a table in parts reads, by purpose


@dataclass(frozen=True)
class AuditColumns:
    """The columns of an audit.

    Parameters
    ----------
    subject : Subject
        The forecaster, or the columns that contain forecasts.
    source : str
        File name of the table, for messages.
    target : str
        Column with the outcomes.
    named, searched : tuple of str
        Columns that define groups, and columns in which groups are searched.
    person : str or None
        Column with ids of people.
    scored : tuple of str
        Columns that are read of all rows: the target, those of named groups, forecasts and people.
    """

    subject: Subject
    source: str
    target: str
    named: tuple[str, ...]
    searched: tuple[str, ...]
    person: str | None
    scored: tuple[str, ...]

    @classmethod
    def of(
        cls,
        subject: Subject,
        parts: Parts,
        target: str,
        groups: Sequence[str],
        features: Sequence[str] | None,
        id_column: str | None,
        person: str | None,
    ) -> Self:
        """Check that the requested columns exist, and collect them."""
        source, named = parts.source, tuple(dict.fromkeys(check_names(groups)))
        # a person may have several ids: one row per person is audited
        persons = [name for name in (person, id_column) if name is not None]
        for name in (target, *named, *(features or ()), *persons):
            check_column(name, parts.columns, source)
        used = subject.columns(parts.columns, source)
        if target in (*named, *(features or ())):
            option = "groups" if target in named else "features"
            # in groups defined by y even the true distribution is miscalibrated (method: errata)
            raise InputError(
                f"{option} contains {target!r}, the target: groups defined by the outcome are"
                " miscalibrated under any model; leave it out"
            )
        # called even if features are given: it refuses a target that is one of the forecasts
        own = searched_columns(subject, parts.columns, target, {target, *persons}, source)
        searched = tuple(own if features is None else features)
        scored = tuple(dict.fromkeys((target, *named, *used, *persons[:1])))
        return cls(subject, source, target, named, searched, next(iter(persons), None), scored)


# --- surveys of tables in parts: rows, outcomes, values of group columns, and people

SURVEY = 0
CHOICE = 1
SCORES = 2
"""Keys of the random streams by purpose."""


def block_generator(seed: int, purpose: int, part: int, block: int) -> np.random.Generator:
    """Return the random generator of one block, which depends on neither order nor worker."""
    # a keyed stream per block, instead of one stream that blocks consume in some order
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, part, block)))


@dataclass(frozen=True)
class Survey:
    """Summary of the rows of one part, used to plan an audit.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    seen : dict of str to Seen
        Values of the group columns.
    digest : bytes
        Hash of the outcomes.
    people : People or None
        People by row, if ids are needed.
    unseen : UnseenValues
        Values that are absent from the forecaster's training table.
    """

    n_rows: int
    seen: dict[str, Seen]
    digest: bytes
    people: People | None
    unseen: UnseenValues


def chosen_rows(
    surveys: Mapping[int, Survey], kept: Mapping[int, Ints] | None, size: int, seed: int
) -> dict[int, Ints]:
    """Choose a simple random sample of `size` rows; return its rows of each part.

    All rows are chosen if there are at most `size`. `kept` restricts the choice to some rows of
    each part.
    """
    sizes = [one.n_rows if kept is None else kept[i].size for i, one in surveys.items()]
    ends, total = np.cumsum(sizes), sum(sizes)
    # positions among all rows, so that all sets of rows of this size are equally likely
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(CHOICE,)))
    picked = sampled_rows(total, size, random)
    of_parts = np.split(picked, np.searchsorted(picked, ends[:-1]))
    inside = [rows - (end - n) for rows, end, n in zip(of_parts, ends, sizes, strict=True)]
    return {
        i: rows if kept is None else kept[i][rows] for i, rows in zip(surveys, inside, strict=True)
    }


def survey_part(shared: tuple[AuditColumns, int], parts: Parts, i: int) -> Survey | None:
    """Survey one part, checking its values for the audit; return None for a part without rows."""
    columns, seed = shared
    source = parts.names[i]
    n = 0
    hashed = hashlib.sha256()
    seen: dict[str, Seen] = {}
    people: list[People] = []
    unseen: list[UnseenValues] = []
    for block, (start, table) in enumerate(parts.blocks(i, columns.scored)):
        with about(source, start):
            y = number_column(table, columns.target, source=source)
            n += y.size
            # little-endian, so that the hash does not depend on the machine
            hashed.update(np.ascontiguousarray(y, dtype="<f8").data)
            # reading forecasts from columns checks them, so a bad part is found in the first pass
            columns.subject.of(table, source)
            columns.subject.check_outcomes(y, table, target=columns.target, source=source)
            if columns.person is not None:
                labels = id_column(table, columns.person, source=source)
                chance = block_generator(seed, SURVEY, i, block).random(y.size)
                people.append(People.of(labels, i, start, chance))
            found = {name: Seen.of(table[name]) for name in columns.named}
            unseen.append(UnseenValues.of(columns.subject.schema, table))
        seen = {name: seen[name] + found[name] for name in seen} or found
    if n == 0:
        return None
    who = People.joined(people) if people else None
    return Survey(n, seen, hashed.digest(), who, reduce(add, unseen))


# --- random samples of rows of a table in parts


def take_part(
    shared: tuple[AuditColumns, Mapping[int, Ints]], parts: Parts, i: int
) -> pd.DataFrame:
    """Return the chosen rows of one part; raise InputError if the forecaster refuses them.

    Their index has their numbers within the part.
    """
    columns, rows = shared[0], shared[1][i]
    source = parts.names[i]
    # groups are searched in the sample alone
    blocks = parts.blocks(i, tuple(dict.fromkeys((*columns.scored, *columns.searched))))
    taken = [block.iloc[_within(rows, start, len(block))] for start, block in blocks]
    table = pd.concat(taken, ignore_index=True)
    with about(source):
        for name in table.columns:
            # refuses lists and structs here, where the part is known; a few rows suffice
            coded(table[name].head(100), f"column {name!r}")
    forecaster: Any
    forecaster, X = columns.subject.of(table, source)
    if X is not None:
        # a trial forecast, while the part of a refused row is known; the audit takes 64 draws
        with refusals(source, rows[0]):
            forecaster.forecast(X, 0.5)
    return table.set_axis(rows)


def joined_parts(taken: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the rows taken from each part; the index has the number of the part as well."""
    # a column without values in a part has no type, and would turn dates of other parts into
    # objects
    typed = {i: table.dropna(axis="columns", how="all") for i, table in sorted(taken.items())}
    return pd.concat(typed).reindex(columns=next(iter(taken.values())).columns)


def _within(rows: Ints, start: int, count: int) -> Ints:
    """Return the chosen rows among `count` rows from `start`, relative to `start`."""
    first, last = np.searchsorted(rows, (start, start + count))
    return rows[first:last] - start


# --- scoring of the parts of a table, one block at a time

# all workers receive the rows of all parts, and numbers of rows would take 64 times the space
RowBits = Mapping[int, NDArray[np.uint8]]
"""Rows of each part, as one bit per row."""


def count_part(
    shared: tuple[AuditColumns, CountPlan, RowBits | None, int], parts: Parts, i: int
) -> RowCounts | None:
    """Score one part; return None if none of its rows are audited.

    `shared` are the columns, the plan, the audited rows (None for all) and the seed of the draws.
    """
    columns, plan, kept, seed = shared
    source = parts.names[i]
    rows = None if kept is None else np.flatnonzero(np.unpackbits(kept[i]))
    counts = None
    for block, (start, whole) in enumerate(parts.blocks(i, columns.scored)):
        table = whole if rows is None else whole.iloc[_within(rows, start, len(whole))]
        if len(table):
            # keyed by part and block, so draws depend on neither worker nor order
            random = block_generator(seed, SCORES, i, block)
            with refusals(source, start):
                y = number_column(table, columns.target, source=source)
                model, X = columns.subject.of(table, source)
                counts = total(counts, count_rows(model, X, y, table, plan, random))
    return counts


def added(counts: Iterable[tuple[int, RowCounts | None]]) -> tuple[RowCounts, list[int]]:
    """Sum the counts as they arrive; return the sum and the part numbers."""
    sums: dict[int, Any] = {}
    found: Any = None
    # counts take 0.2 MB per group and part: a list for all parts might not fit in memory
    for i, one in counts:
        sums[i] = one and one.sums
        found = total(found, one)
    # floating-point sums depend on the order of addition
    known = list(filter(None, map(sums.get, sorted(sums))))
    if known:
        found = replace(found, sums={key: sum(one[key] for one in known) for key in known[0]})
    return found, sorted(sums)


# --- audits of tables in parts

SAMPLE_SIZE = 100_000
"""Size of the random sample that is audited in memory."""

LEVELS = (0.8, 0.9)
"""Nominal levels of the prediction intervals whose coverage is counted in every audit."""


def audit_parts(
    model: Any,
    table: str | Path | Parts,
    target: str,
    *,
    groups: Sequence[str] = (),
    features: Sequence[str] | None = None,
    id_column: str | None = None,
    person: str | None = None,
    levels: Sequence[float] = (),
    sample_size: int = SAMPLE_SIZE,
    client: Any = None,
    skip_bad: bool = False,
    random_state: RandomState = None,
    name: str | None = None,
    about: Mapping[str, str] | None = None,
    verbose: bool = False,
    search: Search = STANDARD,
) -> Audit:
    """Audit forecasts of a table in parts, with at most one block of rows in memory at a time.

    Parameters
    ----------
    model : forecaster or ForecastColumns
        A fitted forecaster, which is evaluated with 64 jittered draws per row, or the columns that
        contain the forecasts of another model.
    table : path or Parts
        A folder of parquet or csv parts, or one file. Workers of a cluster open it by the same
        path.
    target : str
        Column with the outcomes.
    groups : sequence of str
        Columns that define groups. A column with few values gives one group per value; other
        columns give two halves, cut at the median of the random sample. Groups and features must be
        known before the outcome; possible leaks are detected in the random sample, and are reported
        but do not count as findings.
    features : sequence of str, optional
        Columns in which groups are searched; by default the features of the forecaster, or all
        columns that are not forecasts.
    id_column : str, optional
        Column with the id of each person; repeated ids are refused. It takes about 100 bytes of
        memory per row.
    person : str, optional
        Column with ids of people who have several rows: one row per person, chosen at random, is
        audited. It takes about 100 bytes of memory per row.
    levels : sequence of float
        Nominal levels of intervals whose coverage can be certified, besides 0.8 and 0.9.
    sample_size : int, default 100,000
        Size of the random sample that is audited in memory: scores, scanned, learned and worst
        groups and examples use this sample. A table with at most as many rows is audited in memory.
    client : distributed.Client, optional
        Client of a Dask cluster; the results are identical to those of one process.
    skip_bad : bool, default False
        Whether to skip parts that cannot be read; they are named in the notes.
    random_state : int, generator or None
        Seed of the draws, the random sample and the searches.
    name : str, optional
        Name of the forecaster in reports.
    about : dict of str to str, optional
        As in `audit`.
    verbose : bool, default False
        Whether to show progress on a terminal: finished parts, rows per second, time left.
    search : Search, optional
        Options of tests and searches, as in `audit`.

    Returns
    -------
    Audit
        Scores computed from PITs, named groups, the certificate with its bounds in `worst_groups`,
        histogram and calibration curve, except that of events, use all rows. Everything else uses
        the random sample, as the notes report.

    Raises
    ------
    InputError
        If a part, column or value cannot be read, with file and row; or as `audit` does.

    Notes
    -----
    The columns of outcomes, groups and forecasts are read three times: to collect the outcomes and
    the values of group columns, to take the random sample and try the forecaster on it, and to
    score. Bad parts are therefore found early. Columns in which groups are searched are read once,
    for the sample.

    PITs are counted in 6400 bins: W1 errors are within 1/12800 = 0.00008 of the exact ones.
    Certified bounds remain valid and are hardly wider: see `certificates.certify_counts`. Tests,
    other coverages, shares at or below a level and the histogram are exact.

    Counts are integers and sums are added in the order of the parts, so results do not depend on
    the workers or on the order of completion.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from evenhand.forecast_columns import ForecastColumns
    >>> from evenhand.tables.files import write_table
    >>> y = np.random.default_rng(0).normal(size=3000)
    >>> rows = pd.DataFrame({"y": y, "mean": 0.0, "std": 2.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i, part in enumerate(np.split(np.arange(3000), 3)):
    ...         write_table(rows.iloc[part], pathlib.Path(folder, f"part-{i}.parquet"))
    ...     subject = ForecastColumns(mean="mean", std="std")
    ...     found = audit_parts(subject, folder, "y", sample_size=500, random_state=0)
    >>> found.n_samples, round(found.score("90% coverage"), 2)
    (3000, 1.0)
    """
    check_count("sample_size", sample_size)
    # options are checked before the table is read, which may take hours
    described = check_about(about)
    counted = tuple(sorted({*LEVELS, *(check_fraction("level", level) for level in levels)}))
    seed = _seed(random_state)
    subject = as_subject(model)
    parts = table if isinstance(table, Parts) else open_parts(table, skip_bad=skip_bad)
    columns = AuditColumns.of(subject, parts, target, groups, features, id_column, person)
    skipped = dict(parts.skipped)
    noted = skipped if skip_bad else None
    over = partial(over_parts, parts=parts, client=client, skipped=noted, verbose=verbose)
    parts = typed_parts(over, parts, (*columns.named, *columns.searched), subject.schema)
    over = partial(over, parts=parts)
    # parts skipped when the table was opened or typed are not read again
    unread = [i for i in range(len(parts)) if parts.names[i] not in skipped]
    found = over(survey_part, (columns, seed), numbers=unread, description="reading")
    # in the order of the parts, because it determines how values of mixed types are written
    surveys = {i: one for i, one in sorted(found, key=itemgetter(0)) if one is not None}
    if not surveys:
        raise InputError(f"{columns.source} has no rows; an audit needs data")
    kept = None
    if columns.person is not None:
        people = People.joined([one.people for one in surveys.values() if one.people is not None])
        surveys = {i: replace(one, people=None) for i, one in surveys.items()}  # to free memory
        if person is not None:
            kept = people.chosen()
        elif (twice := people.repeated(parts, columns.person)) is not None:
            place = columns.source, columns.person
            raise repeated_id(*place, twice.again, twice.label, twice.first)
    chosen = chosen_rows(surveys, kept, sample_size, seed)
    some = [i for i in chosen if chosen[i].size]
    sample = joined_parts(
        dict(over(take_part, (columns, chosen), numbers=some, description="taking rows"))
    )
    # fixed before rows are counted: halves are cut at the median of the sample; values are those of
    # all rows, so that values missing from the sample have a group, too
    seen = {name: reduce(add, (s.seen[name] for s in surveys.values())) for name in columns.named}
    known = {
        name: Partition.learn(sample[name], name, source=columns.source, seen=seen[name])
        for name in columns.named
    }
    good = [i for i in surveys if parts.names[i] not in skipped]
    counted_rows = None
    if sum(surveys[i].n_rows if kept is None else kept[i].size for i in good) > len(sample):
        plan = _count_plan(columns, sample, known, counted)
        rows = None if kept is None else _bits(kept, surveys)
        shared = (columns, plan, rows, seed)
        counted_rows, good = added(over(count_part, shared, numbers=good, description="scoring"))
        # parts skipped during scoring must not be part of the searches either
        sample = sample[sample.index.isin(good, level=0)]
    with waiting(f"searching {len(sample):,} rows", enabled=verbose):
        asked = {"search": search, "random_state": seed, "name": name, "about": described}
        audit = _audited(columns, sample, known, counted_rows, **asked)
    if person is not None and audit.certificate is not None:
        audit = replace(audit, certificate=replace(audit.certificate, one_row_each=True))
    return _sourced(audit, surveys, good, skipped, sample, columns)


def _bits(rows: Mapping[int, Ints], surveys: Mapping[int, Survey]) -> RowBits:
    """Return rows of each part as bits."""
    return {i: np.packbits(np.isin(np.arange(surveys[i].n_rows), one)) for i, one in rows.items()}


def _seed(random_state: RandomState) -> int:
    """Return the integer seed of the random streams of all blocks."""
    random = generator(random_state)  # raises for an invalid seed
    is_seed = isinstance(random_state, numbers.Integral)
    return int(random_state) if is_seed else int(random.integers(2**32))  # type: ignore[arg-type]


def _audited(
    columns: AuditColumns,
    sample: pd.DataFrame,
    known: Mapping[str, Partition],
    counted: RowCounts | None,
    **options: Any,
) -> Audit:
    """Audit the random sample in memory, with the counts of all rows if they are more."""
    table = sample.reset_index(drop=True)
    y = number_column(table, columns.target, source=columns.source)
    kind = columns.subject.outcome_kind_in(table, columns.source)
    check_outcomes(y, name=f"{columns.source}: column {columns.target!r}", kind=kind)
    model, X = columns.subject.of(table, columns.source)
    masks = [pair for name in columns.named for pair in known[name].masks(table[name]).pairs()]
    with warnings.catch_warnings():
        # `check_outcomes` has warned above, with the name of the column
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        return audited(
            model,
            X,
            y,
            # groups without rows in the sample are counted in all rows
            groups=Groups((group, mask) for group, mask in masks if mask.any()),
            features=table[list(columns.searched)] if columns.searched else None,
            target_name=columns.target,
            counted=counted,
            **options,
        ).audit


FIRST_ROWS = 1000
"""Rows of the sample whose forecasts show the kind of forecasts and the centre of residuals."""


def _count_plan(
    columns: AuditColumns,
    sample: pd.DataFrame,
    known: Mapping[str, Partition],
    levels: tuple[float, ...],
) -> CountPlan:
    first = sample.head(FIRST_ROWS).reset_index(drop=True)
    model, X = columns.subject.of(first, columns.source)
    forecast = forecast_of(model, X, np.random.default_rng(0))
    link = forecast.inside_link()
    # frequent values also occur in the sample, so it suffices to find the rounding cells, which
    # must not depend on the block (outcomes: 4.3); forecasts with atoms need none
    outcomes = number_column(sample, columns.target, source=columns.source)
    is_continuous = forecast.outcome_kind is OutcomeKind.CONTINUOUS
    cells = Rounding.of(outcomes) if is_continuous else Rounding()
    mean = forecast.mean()
    return CountPlan(
        tuple(known[name] for name in columns.named),
        levels if forecast.is_randomized else tuple(sorted({*levels, *WIDER_LEVELS})),
        cells,
        None if link is None else link.link,
        float(np.mean(outcomes[: len(first)] - (mean if mean.ndim == 1 else mean.mean(axis=1)))),
    )


def _sourced(
    found: Audit,
    surveys: Mapping[int, Survey],
    good: Sequence[int],
    skipped: Mapping[str, str],
    sample: pd.DataFrame,
    columns: AuditColumns,
) -> Audit:
    """Add notes, ids or row numbers of examples and learned groups, and the hash of the outcomes.

    Rows are numbered as if the parts used were one table, without skipped parts.
    """
    notes = [
        note(NoteKind.PART_LEFT_OUT, (name,), reason=skipped[name]) for name in sorted(skipped)
    ]
    n_rows = pd.Series({i: surveys[i].n_rows for i in good})
    # counts contain people only; the number of rows is known from the survey
    rows = int(n_rows.sum())
    if found.n_samples < rows:
        notes.append(note(NoteKind.ONE_ROW_EACH, numbers=(found.n_samples, rows)))
    if columns.person is not None:
        found = replace(found, ids=sample[columns.person].astype(str).to_list())
    part, row = (sample.index.get_level_values(level).to_numpy() for level in (0, 1))
    starts = n_rows.cumsum() - n_rows
    found = renumbered(found, starts[part].to_numpy() + row)
    data = {"n_rows": rows, "n_parts": len(good), "n_searched": len(sample)}
    # a hash of the parts' hashes: one hash of all outcomes would need them in order
    digest = hashlib.sha256(b"".join(surveys[i].digest for i in good)).hexdigest()
    known = found.provenance | {"data": found.provenance["data"] | data, "values_sha256": digest}
    unseen = reduce(add, (one.unseen for one in surveys.values()))
    notes += found.notes
    return found.with_rows(notes=tuple(notes), provenance=known).with_unseen(unseen)
