"""Audits of tables in parts: sums in any order, equal to an audit in memory.

Where forecasts are normal, in columns, PITs are known from theory: `Phi((y - mean) / std)`; an
audit in memory of the same PITs is then the reference. Where a forecaster draws, the draws of each
block are made again by the same seeds.
"""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression

from complaints import complaint, refused
from evenhand import Forecast, ForecastColumns, RandomizedRegressor, audit
from evenhand._validate import DiscreteOutcomeWarning, InputError
from evenhand.audits import CountPlan, audit_pit, count_rows, forecast_of
from evenhand.audits.forecasts import RowReader
from evenhand.calibration import PIT_BINS as BINS
from evenhand.calibration import Cells, calibration_error
from evenhand.certificates import certify_pit
from evenhand.draws import fresh
from evenhand.outcomes import Outcomes
from evenhand.report import NoteKind, notes_of
from evenhand.scale import ModelSubject, Repeated, audit_parts, forecast_parts, parts_audit
from evenhand.scale.parts_audit import (
    SCORES,
    AuditColumns,
    People,
    block_generator,
    chosen_rows,
    survey_part,
)
from evenhand.tables import Partition, Parts, Seen, group_columns, open_parts
from parts_examples import (
    ASKED,
    GIVEN,
    QUICK,
    SERVED,
    a_model,
    bad_folder,
    people,
    searching,
    temporary,
    write_parts,
)

GROUPS = ["sex", "region", "age", "score", "since", "owner", "rooms"]
BIN = 1 / (2 * BINS)


@pytest.fixture
def small_blocks(monkeypatch):
    """Read blocks of few rows, so that a small table has many."""
    monkeypatch.setitem(Parts.blocks.__kwdefaults__, "size", 130)


def pits(table):
    return np.asarray(ndtr((table["y"] - table["mean"]) / table["std"]))


@settings(max_examples=10)
@given(st.sets(st.integers(1, 399), max_size=5).map(sorted), st.integers(0, 1000))
def test_groups_of_pieces_are_those_of_the_whole_where_the_sample_is_the_whole(cuts, seed):
    table = awkward(400, seed)
    for name in table.columns.drop("name"):
        part = Partition.learn(table[name], name, source="t", seen=Seen.of(table[name]))
        ends = itertools.pairwise([0, *cuts, len(table)])
        found = [part.masks(table[name][start:stop]) for start, stop in ends]
        expected = group_columns(table, [name], source="t")
        assert list(found[0]) == list(expected)
        for group, mask in expected.items():
            np.testing.assert_array_equal(np.concatenate([one[group] for one in found]), mask)
        assert sum(mask.sum() for mask in expected.values()) == len(table)


def awkward(n, seed):
    random = np.random.default_rng(seed)
    table = people(n, seed)
    table["large"] = 2**53 + random.integers(0, 50, n)
    table["huge"] = (2**63 + random.integers(0, 50, n).astype(np.uint64)).astype(np.uint64)
    table["infinite"] = np.where(random.random(n) < 0.3, np.inf, random.normal(size=n))
    table["few"] = random.choice([1.0, 2.5, np.nan], n)
    table["at"] = pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(
        random.integers(0, 10**6, n), unit="s"
    )
    table["kind"] = pd.Categorical(random.choice(["a", "b"], n), categories=["b", "a", "never"])
    table["maybe"] = np.where(random.random(n) < 0.2, None, random.random(n) < 0.5)
    table["nothing"] = np.nan
    table["none"] = None
    table["zeros"] = np.where(random.random(n) < 0.97, 0.0, random.normal(size=n))
    table["name"] = [f"n{i}" for i in range(n)]
    return table


def test_outcomes_whose_squares_are_no_numbers_are_refused():
    table = people(50)
    plan = CountPlan((), (0.8, 0.9))
    forecast = Forecast.from_normal(table["mean"], table["std"])
    large, random = np.full(50, 1e200), np.random.default_rng(0)
    refused("outcomes .*within", count_rows, forecast, None, large, table, plan, random)


def surveyed(table, seed=0, person=None):
    parts = table if isinstance(table, Parts) else open_parts(table)
    shared = AuditColumns.of(GIVEN, parts, "y", (), (), None, person), seed
    found = {i: survey_part(shared, parts, i) for i in range(len(parts))}
    return {i: one for i, one in found.items() if one is not None}


def test_rows_are_chosen_evenly_and_without_replacement(tmp_path, small_blocks):
    """250 seeds: rows are chosen evenly (chi-square, 1e-6), two given rows rarely together."""
    parts = open_parts(write_parts(people(200)[["y", "mean", "std"]], tmp_path / "in", [10, 150]))
    first = np.array([0, 10, 150])
    n, size, seeds = 200, 40, 250
    hits, both, surveys = np.zeros(n), 0, surveyed(parts)
    for seed in range(seeds):
        chosen = chosen_rows(surveys, None, size, seed)
        rows = np.concatenate([first[i] + chosen[i] for i in chosen])
        assert np.unique(rows).size == size
        hits[rows] += 1
        both += {3, 180} <= set(rows.tolist())
    # without replacement the statistic is (n - 1) / (n - size) times that with; chi-square, n - 1
    statistic = (
        ((hits - seeds * size / n) ** 2).sum() / (seeds * size / n * (1 - size / n)) * (n - 1) / n
    )
    assert 1e-6 < stats.chi2.cdf(statistic, n - 1) < 1 - 1e-6
    together = size * (size - 1) / (n * (n - 1))
    assert stats.binomtest(both, seeds, together).pvalue > 1e-6


def test_people_of_many_rows_each_fill_the_sample(tmp_path):
    table = people(2000)
    table["who"] = np.arange(2000) % 100
    folder = write_parts(table, tmp_path / "in", [700])
    found = audit_parts(GIVEN, folder, "y", person="who", sample_size=60, random_state=0, **QUICK)
    assert (found.n_samples, found.provenance["data"]["n_searched"]) == (100, 60)


@pytest.mark.usefixtures("small_blocks")
def test_one_row_of_each_person_is_taken_evenly(tmp_path):
    """One person, four rows in three parts: each in a quarter of 120 runs (1e-6 each)."""
    table = people(60)
    table["who"] = np.arange(60)
    table.loc[[3, 4, 25, 59], "who"] = 1000
    parts = open_parts(write_parts(table[["y", "mean", "std", "who"]], tmp_path / "in", [20, 40]))
    taken = np.zeros(60)
    for seed in range(120):
        surveys = surveyed(parts, seed, "who").values()
        chosen = People.joined([one.people for one in surveys if one.people]).chosen()
        rows = np.concatenate([20 * part + rows for part, rows in chosen.items()])
        assert table["who"].iloc[rows].is_unique
        assert rows.size == 57
        taken[rows] += 1
    assert (taken[~np.isin(np.arange(60), [3, 4, 25, 59])] == 120).all()
    for row in (3, 4, 25, 59):
        assert stats.binomtest(int(taken[row]), 120, 0.25).pvalue > 1e-6


@pytest.fixture
def plans(monkeypatch):
    """Return a list that gets the plan by which each audit counts its rows."""
    kept = []
    added = parts_audit.added

    def spy(counts):
        total, numbers = added(counts)
        kept.append(total.plan)
        return total, numbers

    monkeypatch.setattr(parts_audit, "added", spy)
    return kept


def read_again(folder, subject, plan, seed=0, kept=None):
    """Score each block with its own random numbers: rows, PITs, residuals and bases."""
    parts = open_parts(folder)
    tables, pits, residual, bases = [], [], [], []
    for i in range(len(parts)):
        for block, (start, whole) in enumerate(parts.blocks(i)):
            table = (
                whole if kept is None else whole[np.isin(start + np.arange(len(whole)), kept[i])]
            )
            if not len(table):
                continue
            y, random = table["y"].to_numpy(dtype=float), block_generator(seed, SCORES, i, block)
            ties, (model, X) = fresh(y.size, random), subject.of(table, "t")
            forecast, is_own = forecast_of(model, X, random), not isinstance(model, Forecast)
            rounding = plan.rounding
            reader = RowReader(Outcomes(y), ties, forecast.outcome_kind, rounding)
            found = reader.read(slice(0, y.size), forecast, random, is_own=is_own)
            tables.append(table)
            pits.append(found.cells.at_points())
            residual.append(found.residual)
            bases += [] if found.base is None else [found.base]
    return (
        pd.concat(tables, ignore_index=True),
        Cells.joined(pits),
        np.concatenate(residual),
        Cells.joined(bases) if bases else None,
    )


def compare(found, plan, table, pits, residual, base=None):
    """Compare an audit in parts with what is known of the same PITs in memory."""
    pairs = (pair for part in plan.groups for pair in part.masks(table[part.column]).items())
    masks = {name: mask for name, mask in pairs if mask.any()}
    expected = audit_pit(pits, groups=masks, residual=residual, random_state=0, **QUICK)
    assert (found.n_samples, found.n_draws) == (expected.n_samples, expected.n_draws)
    ours, theirs = found.groups.set_index("group"), expected.groups.set_index("group")
    assert ours.index.tolist() == theirs.index.tolist()
    assert ours["n"].tolist() == theirs["n"].tolist()
    assert ours["too_small"].tolist() == theirs["too_small"].tolist()
    assert np.abs(ours["error"] - theirs["error"]).max() <= BIN
    assert (ours["error_low"] <= ours["error"]).all()
    assert (ours["error"] <= ours["error_high"]).all()
    sure = ["mean_pit", "bias", "coverage_80", "coverage_90"]
    np.testing.assert_allclose(ours[sure], theirs[sure], rtol=1e-10, atol=1e-12)
    if pits.n_draws == 1:
        # tests of one draw use its exact PITs
        p, exact = (frame["p_value"].iloc[1:] for frame in (ours, theirs))
        np.testing.assert_allclose(p, exact, rtol=1e-9)
    pd.testing.assert_frame_equal(found.calibration, expected.calibration, rtol=0, atol=1e-12)
    pd.testing.assert_frame_equal(found.histogram, expected.histogram, rtol=0, atol=1e-12)
    for measure in ("80% coverage", "90% coverage"):
        assert found.score(measure) == pytest.approx(expected.score(measure), abs=1e-12)
    assert abs(found.score("average error") - calibration_error(pits)) <= BIN
    # bounds of counts are those of PITs or a little wider (test_counts.py)
    proof, ours = certify_pit(pits, groups=masks, base=base, random_state=0), found.certificate
    assert (ours.link, ours.bound) == (proof.link, proof.bound)
    if base is not None or not pits.is_randomized:
        plain = [one for mass in (0.1, 0.2, 0.5, 1.0) for one in proof.plain_intervals(mass)]
        # the ends of the intervals are edges of the bins
        assert list(found.plain_intervals["floor"]) == [one.floor for one in plain]
    for mass in (0.1, 0.2):
        assert -1e-9 <= ours.group_error(mass) - proof.group_error(mass) <= 1.4 / BINS / mass
        assert ours.coverage(0.8, mass) == pytest.approx(proof.coverage(0.8, mass), abs=0.005)


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """Return a folder with every kind of column, and values that only some parts have."""
    table = people(2600, 5)
    table["rooms"] = table["rooms"].astype("Int64")
    # a whole number in blocks where none is missing, else a float
    table.loc[30:40, "rooms"] = pd.NA
    table["kind"] = pd.Categorical(np.where(np.arange(2600) % 3 == 0, "a", "b"))
    table["place"] = "usual"
    table.loc[2000:2039, "place"] = "only here"
    table.loc[5, "place"] = "once"
    return write_parts(table, tmp_path_factory.mktemp("rich") / "in", [500, 501, 1900])


@pytest.mark.usefixtures("small_blocks")
def test_an_audit_in_parts_says_what_one_in_memory_says(rich, plans):
    sample_size = 150
    groups = [*GROUPS, "kind", "place"]
    found = audit_parts(
        GIVEN, rich, "y", groups=groups, sample_size=sample_size, random_state=0, **QUICK
    )
    (plan,) = plans
    table, cells, residual, _ = read_again(rich, GIVEN, plan)
    assert np.allclose(cells.drawn[:, 0], pits(table), atol=1e-14)
    compare(found, plan, table, cells, residual)
    named = found.groups.set_index("group")["n"]
    assert (named["place = only here"], named["place = once"]) == (40, 1)
    assert "flat" not in set(itertools.chain(*found.scan["features"]))
    worst = found.worst_groups.set_index("mass")
    assert worst.loc[1.0, "n"] == sample_size
    assert (found.scan["n"] <= sample_size).all()
    assert worst.loc[0.2, "certified"] == found.certificate.group_error(0.2)
    (sampled,) = notes_of(found.notes, NoteKind.SAMPLED_ROWS)
    assert sampled.numbers == (sample_size,)
    assert "scanned groups" in sampled.subject
    (counted,) = notes_of(found.notes, NoteKind.COUNTED_ROWS)
    assert counted.numbers[0] == found.provenance["data"]["n_rows"] == 2600
    assert found.target == "y"
    json.loads(found.to_json())
    assert found.summary()
    assert found.to_html()


@pytest.mark.usefixtures("small_blocks")
def test_rounded_outcomes_are_spread_over_their_cells(tmp_path, plans):
    table = people(1500, 8)
    table["y"] = (table["y"] / 0.25).round() * 0.25
    assert 0.02 < table["y"].value_counts(normalize=True).iloc[0] < 0.1
    folder = write_parts(table, tmp_path / "in", [700])
    with pytest.warns(DiscreteOutcomeWarning, match="in: column 'y' is 0.25 in"):
        found = audit_parts(
            GIVEN, folder, "y", groups=["sex"], sample_size=400, random_state=4, **QUICK
        )
    (plan,) = plans
    assert plan.rounding.step == found.rounding_step == 0.25
    # neither end is an atom: no cell is open
    assert plan.rounding.span == (-np.inf, np.inf)
    rows, cells, residual, _ = read_again(folder, GIVEN, plan, seed=4)
    ends = [ndtr((rows["y"] + side - rows["mean"]) / rows["std"]) for side in (-0.125, 0.125)]
    inner = rows["y"].between(*plan.rounding.span, inclusive="neither")
    pit = cells.drawn[:, 0]
    assert ((ends[0] <= pit) & (pit <= ends[1]))[inner].all()
    compare(found, plan, rows, cells, residual)


@pytest.fixture(scope="module")
def model():
    return a_model()


@pytest.mark.usefixtures("small_blocks")
def test_draws_of_a_forecaster_hang_on_seed_part_and_block_alone(tmp_path, model, plans):
    folder = write_parts(people(700), tmp_path / "in", [300])
    options = {"groups": ["sex", "age"], "sample_size": 200, "levels": [0.5], **QUICK}
    options["random_state"] = 1
    found = audit_parts(model, folder, "y", **options)
    (plan,) = plans
    rows, cells, residual, base = read_again(folder, ModelSubject(model), plan, seed=1)
    r = cells.draws
    assert cells.drawn.shape == (700, 64)
    np.testing.assert_array_equal(base.link.ppf(base.low, r).round(9), cells.drawn.round(9))
    assert (np.floor(r * 64) == np.arange(64)).all()
    compare(found, plan, rows, cells, residual, base)
    assert audit_parts(model, folder, "y", **options).to_json() == found.to_json()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("options", [{}, {"person": "who"}])
def test_the_order_in_which_parts_are_done_changes_no_digit(tmp_path, monkeypatch, options):
    folder = write_parts(people(900).assign(who=np.arange(900) // 2), tmp_path / "in", [200, 201])
    asked = {"groups": GROUPS, "sample_size": 200, "random_state": 0, **QUICK, **options}
    expected = audit_parts(GIVEN, folder, "y", **asked).to_json()
    forward = parts_audit.over_parts

    def backward(*args, **more):
        return iter(list(forward(*args, **more))[::-1])

    monkeypatch.setattr(parts_audit, "over_parts", backward)
    assert audit_parts(GIVEN, folder, "y", **asked).to_json() == expected


@pytest.mark.parametrize("make", [lambda model: GIVEN, lambda model: model])
def test_a_table_no_larger_than_the_sample_is_audited_in_memory(tmp_path, model, make):
    table = people(600)
    folder = write_parts(table, tmp_path / "in", [100, 350])
    subject = make(model)
    options = {"random_state": 7, "name": "it", **searching(QUICK, min_size=80)}
    searched = ["age", "sex", "score"]
    found = audit_parts(
        subject, folder, "y", groups=["sex", "age"], features=searched, sample_size=600, **options
    )
    forecast, X = (ModelSubject(model) if subject is model else GIVEN).of(table, "t")
    masks = group_columns(table, ["sex", "age"], source="t")
    expected = audit(forecast, X, table["y"], groups=masks, features=table[searched], **options)
    ours, theirs = found.to_dict(), expected.to_dict()
    # the hash is of the hashes of the parts, and the number of parts is told
    for one in (ours, theirs):
        del one["provenance"]
    assert ours == theirs


@pytest.mark.usefixtures("small_blocks")
def test_one_row_of_each_person_is_audited(tmp_path, plans):
    table = people(900, 2)
    table["who"] = np.random.default_rng(0).integers(0, 800, 900)
    folder = write_parts(table, tmp_path / "in", [300, 310, 600])
    found = audit_parts(
        GIVEN, folder, "y", person="who", groups=["sex"], sample_size=300, random_state=3, **QUICK
    )
    n = table["who"].nunique()
    assert found.n_samples == n
    told = (
        f"one row per person is audited, {n:,} of 900 rows; group sizes are shares of"
        " people, not of rows"
    )
    assert told in map(str, found.notes)
    assert found.certificate.one_row_each
    surveys = surveyed(folder, 3, "who").values()
    kept = People.joined([one.people for one in surveys if one.people]).chosen()
    rows, cells, residual, _ = read_again(folder, GIVEN, plans[0], seed=3, kept=kept)
    assert rows["who"].is_unique
    assert len(rows) == n
    compare(found, plans[0], rows, cells, residual)
    assert "who" not in set(itertools.chain(*found.scan["features"]))


def test_a_cluster_is_who_is_audited_once_even_where_ids_are_named_too(tmp_path):
    table = people(400).assign(who=np.arange(400) // 2)
    folder = write_parts(table, tmp_path / "in", [150])
    both = {"id_column": "id", "person": "who", "random_state": 0, **QUICK}
    both = searching(both, learned_masses=(0.5,))
    for sample_size in (100, 400):
        found = audit_parts(GIVEN, folder, "y", sample_size=sample_size, **both)
        assert found.n_samples == 200
        assert found.certificate.one_row_each
        rows = table.iloc[found.learned_rows["row"].to_numpy(dtype=int)]
        assert len(rows) > 0
        assert found.learned_rows["id"].tolist() == rows["who"].astype(str).tolist()


@pytest.mark.usefixtures("small_blocks")
def test_an_id_that_comes_twice_is_refused_with_both_places(tmp_path):
    table = people(600)
    table.loc[400, "id"] = table.loc[17, "id"]
    folder = write_parts(table, tmp_path / "in", [200, 350], ".csv")
    told = complaint(audit_parts, GIVEN, folder, "y", id_column="id", sample_size=100, **QUICK)
    assert "in: column 'id', part-2.csv, row 51 repeats the id 17 of part-0.csv, row 18" in told
    assert "--person id" in told
    table.loc[400, "id"] = -1
    folder = write_parts(table, tmp_path / "good", [200, 350], ".csv")
    found = audit_parts(GIVEN, folder, "y", id_column="id", sample_size=100, **QUICK)
    assert found.n_samples == 600
    assert "id" not in set(itertools.chain(*found.scan["features"]))


@pytest.mark.parametrize("case", ["truncated", "missing", "no spread"])
def test_a_bad_part_is_named_or_left_out(tmp_path, case):
    folder, told = bad_folder(tmp_path / "in", case)
    options = {"groups": ["sex"], "sample_size": 120, "random_state": 0, **QUICK}
    refused(told, audit_parts, GIVEN, folder, "y", **options)
    found = audit_parts(GIVEN, folder, "y", skip_bad=True, **options)
    (note,) = notes_of(found.notes, NoteKind.PART_LEFT_OUT)
    assert told in str(note)
    (folder / "part-2.parquet").unlink()
    # counts over all rows; the random sample depends on the numbers of the parts
    expected = audit_parts(GIVEN, folder, "y", **options)
    assert found.n_samples == expected.n_samples
    columns = ["group", "n", "error", "mean_pit", "coverage_80", "coverage_90"]
    pd.testing.assert_frame_equal(found.groups[columns], expected.groups[columns], check_exact=True)
    # residuals are added up from the bias of the rows that were chosen
    np.testing.assert_allclose(found.groups["bias"], expected.groups["bias"], rtol=0, atol=1e-13)
    for name in ("calibration", "histogram"):
        ours = getattr(found, name)
        pd.testing.assert_frame_equal(ours, getattr(expected, name), check_exact=True)
    assert found.certificate.group_error(0.2) == expected.certificate.group_error(0.2)


def test_a_part_that_goes_bad_between_the_passes_is_left_out_or_refused(tmp_path, monkeypatch):
    folder = write_parts(people(400), tmp_path / "in", [100, 200])
    plan = parts_audit._count_plan

    def damage(*args):
        (folder / "part-1.parquet").write_bytes(b"PAR1 nothing PAR1")
        return plan(*args)

    monkeypatch.setattr(parts_audit, "_count_plan", damage)
    with pytest.raises(InputError, match=r"part-1\.parquet"):
        audit_parts(GIVEN, folder, "y", sample_size=120, random_state=0, **QUICK)
    write_parts(people(400), folder, [100, 200])
    found = audit_parts(GIVEN, folder, "y", sample_size=120, random_state=0, skip_bad=True, **QUICK)
    assert found.n_samples == 300
    assert len(notes_of(found.notes, NoteKind.PART_LEFT_OUT)) == 1
    # its rows are in no search
    n_searched = found.provenance["data"]["n_searched"]
    (sampled,) = notes_of(found.notes, NoteKind.SAMPLED_ROWS)
    assert sampled.numbers == (n_searched,)
    assert n_searched < 120


def test_the_band_of_a_bias_is_narrow_however_far_outcomes_are_from_forecasts(tmp_path):
    table = people(3000)
    table["mean"], table["std"] = 0.0, 1.0
    table["y"] = 1e9 + np.random.default_rng(1).normal(size=3000)
    folder = write_parts(table, tmp_path / "in", [1000])
    found = audit_parts(
        GIVEN, folder, "y", groups=["sex"], sample_size=200, random_state=0, **QUICK
    )
    row, y = found.groups.iloc[0], table["y"]
    assert row["bias"] == pytest.approx(y.mean(), abs=1e-6)
    # a t-interval, hardly wider for the skewness of the rows
    expected = 2 * stats.t.isf(found.family.shares["everyone"] / 2, 2999) * stats.sem(y)
    assert row["bias_high"] - row["bias_low"] == pytest.approx(expected, rel=0.02)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_bad", [1, 100])
def test_rows_that_a_model_refuses_are_named_with_their_part(tmp_path, n_bad):
    """Found among the rows that are tried, if there are many, or else when all are scored."""
    train, table = people(300, 1), people(900)
    model = RandomizedRegressor(LinearRegression(), random_state=0)
    model.fit(train[["mean", "std"]], train["y"])
    table.loc[range(899 - n_bad, 899), "std"] = np.nan
    folder = write_parts(table, tmp_path / "in", [300, 600])
    refusal = r"part-2.parquet: the model refuses (the row|some of \d+ rows)"
    refused(f"^{refusal}.*NaN", audit_parts, model, folder, "y", sample_size=200, **QUICK)
    found = audit_parts(model, folder, "y", sample_size=200, random_state=0, skip_bad=True, **QUICK)
    data = found.provenance["data"]
    assert (found.n_samples, data["n_rows"], data["n_parts"]) == (600, 600, 2)
    assert len(notes_of(found.notes, NoteKind.PART_LEFT_OUT)) == 1
    refused(refusal, forecast_parts, model, folder, tmp_path / "out", **ASKED)
    assert temporary(tmp_path) == []
    whole = r"^the model refuses some of 900 rows \(.*NaN.*\); columns without a value: 'std'$"
    refused(whole, audit, model, table[["mean", "std"]], table["y"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"target": "z"}, "has no column 'z'"),
        ({"target": "mean"}, "is the target and cannot be its own forecast"),
        ({"groups": ["y"]}, "groups contains 'y', the target"),
        ({"features": ["y"]}, "features contains 'y', the target"),
        ({"person": "nobody"}, "has no column 'nobody'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(rich, options, told):
    refused(told, audit_parts, GIVEN, rich, **({"target": "y", **QUICK} | options))


@pytest.mark.parametrize(
    "option", [{"sample_size": 0}, {"levels": [2]}, {"about": "unit"}, {"random_state": -1}]
)
def test_mistaken_options_are_refused_before_the_table_is_read(rich, option, monkeypatch):
    monkeypatch.setattr(Parts, "blocks", lambda *args, **options: pytest.fail("the table was read"))
    with pytest.raises(InputError):
        audit_parts(GIVEN, rich, "y", **(QUICK | option))


@pytest.mark.parametrize("column", ["number", "date"])
def test_a_csv_part_whose_column_is_all_missing_goes_with_the_others(tmp_path, column):
    table = people(600)[["y", "mean", "std"]]
    table["number"] = np.random.default_rng(0).normal(size=600)
    table["date"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(600), unit="D")
    table["word"] = np.where(np.arange(600) % 2, "odd", "even")
    table.loc[300:, column] = None
    folder = write_parts(table, tmp_path / "in", [300], ".csv")
    found = audit_parts(
        GIVEN, folder, "y", groups=[column], sample_size=200, random_state=0, **QUICK
    )
    counts = found.groups.set_index("group")["n"]
    assert counts[f"{column} missing"] == 300
    assert len(counts) == 4
    assert counts.drop(["everyone", f"{column} missing"]).sum() == 300


def test_counts_are_written_as_probabilities_unless_there_are_too_many(tmp_path):
    model = ForecastColumns(mean="rate", outcome="count")
    rate = np.linspace(0.5, 6, 40)
    for factor, form in ((1, "pmf=p"), (1000, None)):
        table = pd.DataFrame({"id": np.arange(40), "rate": factor * rate})
        table.to_csv(tmp_path / "in.csv", index=False)
        assert forecast_parts(model, tmp_path / "in.csv", tmp_path / "out.csv").forecast == form
        written = pd.read_csv(tmp_path / "out.csv")
        names = [name for name in written if name.startswith("p")]
        # nobody expects a count beyond half of them, one in a thousand million
        law = stats.poisson(rate[:, None])
        n = 0 if form is None else 1 + 2 * int(law.ppf(1 - 1e-9).max())
        assert names == [f"p{k}" for k in range(n)]
        np.testing.assert_allclose(written[names], law.pmf(np.arange(n)), rtol=1e-9)


@pytest.mark.usefixtures("small_blocks")
def test_values_that_a_model_reads_from_columns_are_named_with_their_file_and_row(tmp_path):
    people(300).assign(std=[*[1.0] * 287, -2.0, *[1.0] * 12]).to_parquet(tmp_path / "t.parquet")
    told = r"^t\.parquet: column 'std', row 288 must be finite and positive, got -2"
    refused(told, forecast_parts, SERVED, tmp_path / "t.parquet", tmp_path / "out.csv", **ASKED)


def test_ids_that_come_in_several_parts_are_told(tmp_path):
    table = people(60)
    table.loc[[15, 40, 59], "id"] = 7
    table.loc[[41], "id"] = 3
    folder = write_parts(table, tmp_path / "in", [20, 40])
    done = forecast_parts(SERVED, folder, tmp_path / "out", **ASKED)
    assert done.repeated == Repeated("7", 4, 2, "part-0.parquet, row 8", "part-0.parquet, row 16")
