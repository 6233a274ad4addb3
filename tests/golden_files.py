"""Golden files: how they are written, read, compared and frozen.

A case is a function that returns plain values; `tests/golden/<case>.json` holds what it returned
when it was written, and `<case>.csv` a table that the command serves.
"""

import csv
import hashlib
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parent / "golden"
SUMS = GOLDEN / "SHA256SUMS"
RTOL, ATOL = 1e-9, 1e-12
LOOSER = {
    # training in float32 sums in an order of the processor: 1e-7 apart; linear models 1e-9
    r"^served_fit/": 1e-5,
    r"^stored_models/(PAIC|mixture|around a forecaster)/": 1e-5,
    # iterations of solvers that end within their own tolerance
    r"^stored_models/around (counts|quantiles)/": 1e-6,
    r"^(repairs|comparisons)/": 1e-5,
}
"""Relative tolerances other than `RTOL`, by the path of a value; the last match counts.

Ends of searches (learned groups, worst groups, the least randomization, quantiles that are solved
for) need none: they take the same steps on these data, and with another mathematics library end
less than 1e-11 apart.
"""

CASES = {}


def case(function):
    """Keep what a function returns; it is given an empty folder."""
    CASES[function.__name__] = function
    return function


def plain(value):
    """Return a result as JSON holds it: floats with all digits, not-a-number as such."""
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name].to_list()) for name in value.columns}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        rows = [plain(one) for one in value]
        are_records = len(rows) > 1 and all(
            isinstance(one, dict) and list(one) == list(rows[0]) for one in rows
        )
        # columns take less room than rows
        return {key: [one[key] for one in rows] for key in rows[0]} if are_records else rows
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"golden files hold no {type(value).__name__}")


def written(value, indent=""):
    """Return JSON in which what fits stands on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= 118:
        return line
    inner = indent + " "
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {written(one, inner)}"
            for key, one in value.items()
        ]
        first, last = "{}"
    else:
        items, (first, last) = [written(one, inner) for one in value], "[]"
        if not any(isinstance(one, dict | list) for one in value):
            return f"{first}{', '.join(items)}{last}"
    return f"{first}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{last}"


def is_table(name):
    return name.startswith("served_")


def write(name, value, folder):
    if is_table(name):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(value)
    else:
        (folder / f"{name}.json").write_text(written(plain(value)) + "\n", encoding="utf-8")


def golden(name):
    if is_table(name):
        return cells(GOLDEN / f"{name}.csv")
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def cells(place):
    with place.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def rtol_at(path):
    """Relative tolerance of a value: that of the last pattern of `LOOSER` it matches."""
    found = [rtol for pattern, rtol in LOOSER.items() if re.search(pattern, path)]
    return found[-1] if found else RTOL


def is_close(got, want, rtol):
    if not (math.isfinite(got) and math.isfinite(want)):
        return got == want or (math.isnan(got) and math.isnan(want))
    return abs(got - want) <= ATOL * max(1.0, rtol / RTOL) + rtol * abs(want)


def differences(got, want, path):
    if isinstance(want, dict) and isinstance(got, dict):
        for key in want.keys() | got.keys():
            place = f"{path}/{key}"
            if key not in got:
                yield f"{place}: is missing"
            elif key not in want:
                yield f"{place}: is new"
            else:
                yield from differences(got[key], want[key], place)
    elif isinstance(want, list) and isinstance(got, list):
        if len(got) != len(want):
            yield f"{path}: has {len(got)} values, not {len(want)}"
        for i, (mine, others) in enumerate(zip(got, want, strict=False)):
            yield from differences(mine, others, f"{path}/{i}")
    elif type(got) is not type(want):
        yield f"{path}: is {got!r}, not {want!r}"
    elif isinstance(want, float):
        if not is_close(got, want, rtol_at(path)):
            yield f"{path}: is {got!r}, not {want!r}"
    elif got != want:
        yield f"{path}: is {got!r}, not {want!r}"


NUMBER = re.compile(r"-?\d+(\.\d+(e[+-]?\d+)?|e[+-]?\d+)")


def with_numbers(rows):
    """Cells of a table, with floats as numbers; draws stay text, which is exact."""
    exact = {i for i, name in enumerate(rows[0]) if name == "r"}
    return [
        [
            float(cell) if i not in exact and NUMBER.fullmatch(cell) else cell
            for i, cell in enumerate(row)
        ]
        for row in rows
    ]


def sums():
    """Return the hash of each golden file, in the form of sha256sum."""
    files = sorted(path for path in GOLDEN.rglob("*") if path.is_file() and path != SUMS)
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(GOLDEN).as_posix()}\n"
        for path in files
    )


def freeze():
    """Write the hashes of the golden files as they are now."""
    SUMS.write_text(sums(), encoding="utf-8")


SHOWN = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d)")


def shown_numbers(text):
    """Return the numbers that a text shows, in order; no versions, hashes or parts of names."""
    return [found.replace(",", "") for found in SHOWN.findall(text.replace("\u2212", "-"))]


def counted(numbers):
    """Return how often each number occurs, from the least to the largest."""
    return dict(sorted(Counter(numbers).items(), key=lambda one: (float(one[0]), one[0])))
