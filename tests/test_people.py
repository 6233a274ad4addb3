"""People and draws: similar ids, repeated ids, key files, fingerprints, spreadsheets."""

import codecs
import hashlib
import json
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from command_outcome import key_file, predict_args, written
from complaints import complaint, refused
from evenhand import Outcomes, save
from evenhand._validate import InputError
from evenhand.draws import KeyedDraws, check_person_labels
from evenhand.scale import audit_parts, forecast_parts
from evenhand.tables import id_column, unguarded
from evenhand.tables.files import guarded, read_table
from parts_examples import ASKED, GIVEN, KEY, QUICK, SERVED, people, write_parts

HIDDEN = {
    "zero-width space": ("a\u200b", "\\u200b", "ZERO WIDTH SPACE"),
    "byte order mark": ("\ufeffa", "\\ufeff", "ZERO WIDTH NO-BREAK SPACE"),
    "right-to-left override": ("a\u202eb", "\\u202e", "RIGHT-TO-LEFT OVERRIDE"),
    "line end": ("a\n", "\\n", "U+000A"),
    "escape": ("a\x1b[2J", "\\x1b", "U+001B"),
    "ideographic space at the end": ("a\u3000", "\\u3000", "IDEOGRAPHIC SPACE"),
    "variation selector": ("a\ufe0f", "\\ufe0f", "VARIATION SELECTOR-16"),
    "braille blank": ("a\u2800", "\\u2800", "BRAILLE PATTERN BLANK"),
}


def takers(value):
    """Return all that takes ids, as functions that are given `value` as the second id."""
    table = pd.DataFrame({"id": ["ok", value]})
    return {
        "ids[1]": lambda: KeyedDraws(KEY)(["ok", value]),
        "t.csv: column 'id', row 2": lambda: id_column(table, "id", source="t.csv"),
        "person[1]": lambda: check_person_labels(["ok", value], 2),
    }


@pytest.mark.parametrize("case", HIDDEN)
def test_ids_with_a_hidden_character_are_refused_by_place_escape_and_name(case):
    value, escape, name = HIDDEN[case]
    for place, take in takers(value).items():
        message = complaint(take)
        assert message.startswith(f"{place} must have no hidden characters, got '")
        assert escape in message
        assert name in message
        assert message.endswith("; remove it")
        assert message.isprintable()


@pytest.mark.parametrize(
    "value",
    ["ada b", "Zo\u00eb", "\u674e\u660e", "-5", "=1+1", "'t Hooft", "a  b", "\u0915\u094d\u0937"],
)
def test_ids_that_can_be_seen_are_taken(value):
    for take in takers(value).values():
        take()
    assert id_column(pd.DataFrame({"id": [value]}), "id", source="t.csv") == [value]


@settings(max_examples=150)
@given(st.text(min_size=1))
@example("0.0")
@example("1e+16")
def test_an_id_is_taken_only_if_all_its_characters_are_seen(value):
    composed = unicodedata.normalize("NFC", value)
    hidden = any(
        unicodedata.category(one)[0] == "C" or (unicodedata.category(one)[0] == "Z" and one != " ")
        for one in composed
    )
    try:
        KeyedDraws(KEY)([value])
    except InputError:
        no_glyph = {unicodedata.lookup("VARIATION SELECTOR-16"), "\u034f", "\u3164", "\u2800"}
        others = any(
            unicodedata.category(one) in {"Mn", "Lo", "So"} or one in no_glyph for one in composed
        )
        is_float = re.fullmatch(r"[+-]?[0-9]+(\.0+|[.0-9]*[eE]\+[0-9]+)", composed)
        assert hidden or composed != composed.strip() or others or is_float
    else:
        assert not hidden
        assert composed == composed.strip()


def test_labels_of_people_are_compared_as_ids_are():
    labels = np.array(["1", 1, "Zo\u00eb", "Zoe\u0308"], dtype=object)
    assert check_person_labels(labels, 4).tolist() == [0, 0, 1, 1]
    message = r"^person\[1\] must be an integer or text, got float 1\.0"
    refused(message, check_person_labels, np.array(["1", 1.0], dtype=object), 2)
    assert check_person_labels(np.array([2.5, 1.0, 2.5]), 3).tolist() == [1, 0, 1]
    y = np.random.default_rng(0).normal(size=40)
    with pytest.raises(InputError, match=r"person\[39\] must have no hidden characters"):
        Outcomes(y, person=[*map(str, range(39)), "0\u200b"])


NORMAL = ("--forecast", "mean=mean,std=std")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    key_file(folder / "key", KEY + b"\n")
    save(SERVED, folder / "model")
    return folder


def repeated(ending, folder):
    """Write a table in which rows 5 and 41 have one id: in parquet in two spellings."""
    table = people(60)[["id", "mean", "std", "y", "age"]].astype({"id": object})
    table["id"] = [f"p{i}" for i in range(60)]
    table.loc[[4, 40], "id"] = ["Zo\u00eb", "Zoe\u0308"]
    return written(table, folder / f"t{ending}")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_repeated_ids_are_refused_in_fit_and_audit_and_warned_of_in_forecasts(
    place, evenhand, tmp_path, ending
):
    table = repeated(ending, tmp_path)
    told = (
        f"t{ending}: column 'id', row 41 repeats the id Zoe\u0308 of row 5; rows of one person are"
        " not independent"
    )
    rows = (table, "--target", "y", "--id", "id")
    out = ("--out", tmp_path / "model")
    for args in (
        ("fit", *rows, *out),
        ("randomize", *rows, *NORMAL, "--goal", 0.4, *out),
        ("recalibrate", *rows, *NORMAL, *out),
        ("audit", *rows, *NORMAL),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "evenhand.forecasters.MixtureMLPRegressor.fit",
                lambda *_: pytest.fail("it was trained"),
            )
            complaint = evenhand(*args)
        assert complaint.code == 2
        assert told in complaint.err
        assert "keep one row of each, or use one of each with --person id in audit" in complaint.err
        assert not (tmp_path / "model").exists()
    # groups take less time to refuse
    towns = written(
        people(120).assign(id="x", town=[f"t{i}" for i in range(120)]), tmp_path / "p.csv"
    )
    many = evenhand("audit", towns, *rows[1:], *NORMAL, "--groups", "town").complaint()
    assert "at most 100 distinct values" in many
    refused(r"row 41 .*id .* of row 5", audit_parts, GIVEN, table, "y", id_column="id", **QUICK)
    made = evenhand(*predict_args(place, table, tmp_path / "out.parquet", "--json")).done()
    said = json.loads(made.out)
    assert (said["n_rows"], said["repeated_ids"], said["key"]) == (60, 1, fingerprint(KEY))
    assert made.err.startswith(
        "warning: 2 rows have the id 'Zo\u00eb' and share one draw; the first are row 5 and row"
        " 41\n"
    )
    r = read_table(tmp_path / "out.parquet")["r"]
    assert r[4] == r[40]
    assert r.nunique() == 59


@pytest.mark.parametrize("ids", [["17.0", "18.0"], ["1e+16", "2.5e+16"]])
def test_ids_of_csv_that_were_floats_are_refused(tmp_path, ids):
    """Each id by itself, so that a person alone is refused or taken as among others."""
    for some in (ids, ids[:1], [ids[0], "a"]):
        people(2)[["mean", "std"]][: len(some)].assign(id=some).to_csv(
            tmp_path / "t.csv", index=False
        )
        message = r"row 1 must not be a whole number written as a float, got '1"
        refused(message, forecast_parts, SERVED, tmp_path / "t.csv", tmp_path / "out.csv", **ASKED)
    for some in (["1e5", "2.5"], ["12e4", ".0"]):
        people(2)[["mean", "std"]].assign(id=some).to_csv(tmp_path / "t.csv", index=False)
        forecast_parts(SERVED, tmp_path / "t.csv", tmp_path / "out.csv", **ASKED)
        assert pd.read_csv(tmp_path / "out.csv", dtype=str)["id"].tolist() == some


def read_with(content, place, evenhand, tmp_path, mode=0o600):
    key = tmp_path / "made.key"
    key.write_bytes(content)
    key.chmod(mode)
    people(30)[["id", "mean", "std"]].to_parquet(tmp_path / "t.parquet")
    return evenhand(
        *predict_args(place, tmp_path / "t.parquet", tmp_path / "out.parquet", "--key-file", key)
    )


TEXT = "Vq3jw8-rQ0zLxN5t"


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF8 + TEXT.encode(),
        TEXT.encode("utf-16"),
        f"{TEXT} \n".encode(),
        f"\t{TEXT}\n".encode(),
        f"{TEXT}\n\n".encode(),
        f"{TEXT}\r".encode(),
        f"{TEXT}\u00e9".encode(),
        bytes(range(128, 160)),
    ],
)
def test_key_files_that_are_not_plain_are_refused(content, place, evenhand, tmp_path):
    told = read_with(content, place, evenhand, tmp_path).complaint()
    assert "made.key: the key file must contain one line of printable ASCII characters" in told
    assert "secrets.token_hex" in told
    assert TEXT not in told
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_one_final_newline_is_not_part_of_the_key(ending, place, evenhand, tmp_path):
    assert read_with(TEXT.encode() + ending, place, evenhand, tmp_path).code == 0
    made = read_table(tmp_path / "out.parquet")
    np.testing.assert_array_equal(made["r"], KeyedDraws(TEXT.encode())(made["id"]))


@pytest.mark.parametrize("key", [b"x" * 500, b"0123456789012345", b"passwordpassword", bytes(32)])
def test_keys_without_entropy_are_refused(key, place, evenhand, tmp_path):
    n_pairs = len({key[i : i + 2] for i in range(len(key) - 1)})
    message = rf"^key must have at least 12 different pairs .* got {n_pairs}; .*easy to guess"
    refused(message, KeyedDraws, key)
    told = read_with(key, place, evenhand, tmp_path).complaint()
    assert "made.key: " in told
    assert "secrets.token_hex" in told
    assert key.decode() not in told


def test_random_keys_have_enough_entropy():
    # fewer than 12 pairs have a probability of 8e-14 in 16 random bytes, 1e-24 in 32 digits
    random = np.random.default_rng(0)
    for _ in range(300):
        KeyedDraws(random.bytes(16))
        KeyedDraws(random.bytes(16).hex().encode())


@pytest.mark.skipif("os.name != 'posix'")
@pytest.mark.parametrize(("mode", "is_warned"), [(0o400, False), (0o640, True), (0o604, True)])
def test_a_key_file_that_others_can_read_is_warned_of(mode, is_warned, place, evenhand, tmp_path):
    made = read_with(TEXT.encode(), place, evenhand, tmp_path, mode)
    assert made.code == 0
    told = (
        f"warning: {tmp_path / 'made.key'}: other users can read or change the key; run: chmod 600 "
    )
    assert made.err.startswith(told) == is_warned
    assert made.err.count("\n") == 1 + is_warned


def fingerprint(key):
    """Compute the fingerprint as documented."""
    return hashlib.blake2b(b"", key=key, digest_size=8, person=b"evenhand key").digest().hex("-", 2)


def test_the_fingerprint_depends_on_the_key_alone_and_is_no_draw():
    draws = KeyedDraws(KEY, "2026-11")
    assert draws.fingerprint == KeyedDraws(KEY).fingerprint == fingerprint(KEY)
    assert draws.fingerprint != KeyedDraws(KEY + b"x").fingerprint
    assert draws.fingerprint != hashlib.blake2b(
        b"", key=KEY, digest_size=8, person=b"evenhand draw"
    ).digest().hex("-", 2)
    long = bytes(range(200))
    assert KeyedDraws(long).fingerprint == fingerprint(hashlib.blake2b(long).digest())


def test_each_row_names_its_context_and_key_so_that_it_can_be_replayed_after_a_rotation(
    place, evenhand, tmp_path
):
    table = people(40)[["id", "mean", "std"]].astype({"id": str})
    table[:20].to_parquet(tmp_path / "old.parquet")
    table[20:].to_parquet(tmp_path / "new.parquet")
    keys = {fingerprint(key): key for key in (KEY, TEXT.encode())}
    key_file(tmp_path / "new.key", TEXT.encode())
    out = [tmp_path / f"out-{name}.csv" for name in ("old", "new")]
    first = evenhand(*predict_args(place, tmp_path / "old.parquet", out[0], "--context", "2026-11"))
    assert first.err.endswith(f"; fingerprint of the key: {fingerprint(KEY)}\n")
    rotated = ("--context", "2026-12", "--key-file", tmp_path / "new.key")
    assert evenhand(*predict_args(place, tmp_path / "new.parquet", out[1], *rotated)).code == 0
    served = pd.concat([pd.read_csv(one, dtype={"id": str}) for one in out])
    assert list(served.columns[-2:]) == ["context", "key"]
    for (key, context), rows in served.groupby(["key", "context"]):
        found = KeyedDraws(keys[key], context)(rows["id"])
        np.testing.assert_allclose(found, rows["r"], rtol=1e-12)
    assert served["key"].nunique() == 2


@pytest.mark.parametrize("name", ["r", "q0.5"])
def test_an_id_column_with_the_name_of_an_output_is_refused_plainly(tmp_path, name):
    table = people(30)[["id", "mean", "std"]].assign(**{name: np.arange(30)})
    table.to_parquet(tmp_path / "t.parquet")
    clash = f"id column {name!r} clashes with an output column of the same name; rename it"
    place, out = tmp_path / "t.parquet", tmp_path / "out.csv"
    refused(clash, forecast_parts, SERVED, place, out, **(ASKED | {"id_column": name}))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("is_folder", [False, True])
def test_an_audit_of_served_forecasts_names_their_keys_and_searches_no_draws(
    place, evenhand, tmp_path, is_folder
):
    table = people(400)
    table["id"] = table["id"].astype(str)
    out = [tmp_path / f"out-{month}.parquet" for month in (11, 12)]
    table.to_parquet(tmp_path / "in.parquet", index=False)
    for month, path in zip((11, 12), out, strict=True):
        context = ("--context", f"2026-{month}")
        evenhand(*predict_args(place, tmp_path / "in.parquet", path, *context)).done()
    served = pd.concat([pd.read_parquet(out[0])[:200], pd.read_parquet(out[1])[200:]])
    joined = served.drop(columns="mean").merge(table[["id", "y", "age"]], on="id")
    cuts = [150] if is_folder else []
    audited = write_parts(joined, tmp_path / "joined", cuts)
    audited = audited if is_folder else audited / "part-0.parquet"
    asked = ("--target", "y", "--forecast", "quantiles=q", "--id", "id", "--json")
    found = json.loads(evenhand("audit", audited, *asked).done().out)
    pairs = ", ".join(f"context '2026-{month}' with key {fingerprint(KEY)}" for month in (11, 12))
    assert found["provenance"]["draws"] == f"keyed hashes of ids, one per row: {pairs}"
    texts = [note["text"] for note in found["notes"]]
    assert "groups were searched in 1 feature: age" in texts


WRITTEN = {
    "=1+1": "'=1+1",
    "+49 170": "'+49 170",
    "-1+2": "'-1+2",
    "@ada": "'@ada",
    "'=1+1": "''=1+1",
    "''@ada": "'''@ada",
    "-5": "-5",
    "'-5": "''-5",
    "'t Hooft": "'t Hooft",
    "ada": "ada",
    "\uff1d1": "'\uff1d1",
    "-": "'-",
}
FORMULAS = [*WRITTEN]


@settings(max_examples=200)
@given(
    st.text(st.sampled_from("'=+-@\t\r5a "), max_size=5),
    st.text(st.sampled_from("'=+-@\t\r5a "), max_size=5),
)
def test_guarding_a_cell_can_be_undone_and_never_makes_two_one(text, other):
    assert unguarded(guarded(text)) == text
    assert (guarded(text) == guarded(other)) == (text == other)
    assert guarded(text)[:1] not in {"=", "+", "@", "\t", "\r"}
    assert guarded(text)[:1] != "-" or guarded(text)[1:].isdigit()


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_ids_that_a_spreadsheet_would_run_are_written_so_that_it_does_not(tmp_path, ending):
    table = people(len(FORMULAS))[["mean", "std"]].assign(id=FORMULAS)
    table.to_parquet(tmp_path / "t.parquet")
    options = ASKED | {"context": "=now()"}
    with pytest.warns(UserWarning, match=r"'id', row 5: \"'=1\+1\" .*'=1\+1'.*apostrophe.*csv"):
        forecast_parts(SERVED, tmp_path / "t.parquet", tmp_path / f"out{ending}", **options)
    found = pd.read_csv(
        tmp_path / f"out{ending}", dtype=str, keep_default_na=False, float_precision="round_trip"
    )
    assert found["id"].tolist() == [*WRITTEN.values()]
    assert set(found["context"]) == {"'=now()"}
    original = found["id"].str.replace(
        r"^'(?='*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])", "", regex=True
    )
    assert original.tolist() == FORMULAS
    assert found["r"].astype(float).tolist() == KeyedDraws(KEY, "=now()")(FORMULAS).tolist()


@pytest.mark.filterwarnings("ignore:.*apostrophe that evenhand adds in csv files")
def test_parquet_keeps_ids_as_they_are(tmp_path):
    people(len(FORMULAS))[["mean", "std"]].assign(id=FORMULAS).to_parquet(tmp_path / "t.parquet")
    forecast_parts(SERVED, tmp_path / "t.parquet", tmp_path / "out.parquet", **ASKED)
    assert pd.read_parquet(tmp_path / "out.parquet")["id"].tolist() == FORMULAS
