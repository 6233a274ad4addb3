"""Archives of fitted estimators that depend on the estimator only."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

CONSTANTS = ("JsonNode", "TypeNode", "FunctionNode")
"""Loaders of skops for objects that never change, of which it does not matter whether two are the
same object."""

NEIGHBOR_TREES = ("BallTree", "KDTree")
COUNTERS = slice(7, 11)
"""Entries in the state of such a tree that count its queries: the same model would have another
hash after use."""


def reproducible(content: bytes) -> bytes:
    """Return an archive of skops that is the same in every process.

    skops identifies objects by their addresses in memory, which also name the files of arrays, and
    its archives have the time of writing. Here objects and files are numbered in the order of
    their first occurrence, and all files have one time.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files.pop("schema.json"))
    _number_objects(schema)
    names: dict[str, str] = {}
    for entry in _entries(schema):
        if entry.get("file") in files:
            ending = entry["file"].partition(".")[2]
            entry["file"] = names.setdefault(entry["file"], f"{len(names)}.{ending}")
        if entry.get("__class__") in NEIGHBOR_TREES:
            for counter in entry["content"]["content"][COUNTERS]:
                counter["content"] = "0"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        renamed = {new: _without_padding(new, files[old]) for old, new in names.items()}
        for name, data in (renamed | {"schema.json": json.dumps(schema, indent=2)}).items():
            member = zipfile.ZipInfo(name)
            member.create_system = 3  # the same on every system
            archive.writestr(member, data)
    return buffer.getvalue()


def _number_objects(schema: dict[str, Any]) -> None:
    """Replace the addresses of objects that occur several times by numbers from 1.

    All others have no number: skops needs none, and whether equal constants are one object depends
    on the process. The order of sets does, too.
    """
    counts = Counter(entry["__id__"] for entry in _entries(schema) if "__id__" in entry)
    numbers: dict[int, int] = {}
    for entry in _entries(schema):
        address = entry.pop("__id__", None)
        if counts[address] > 1 and entry["__loader__"] not in CONSTANTS:
            entry["__id__"] = numbers.setdefault(address, len(numbers) + 1)
        if entry.get("__loader__") == "SetNode":
            entry["content"].sort(key=lambda one: json.dumps(one | {"__id__": 0}))


def _entries(state: Any) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries inside JSON values, each before those inside it."""
    waiting = [state]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)


def _without_padding(name: str, data: bytes) -> bytes:
    """Return the file of an array with zeros between the fields of its records.

    Nodes of trees are padded with bytes that nobody set.
    """
    if not name.endswith(".npy"):
        return data
    found = np.load(io.BytesIO(data), allow_pickle=False)
    if found.dtype.names is None:
        return data
    clean = np.zeros(found.shape, found.dtype)
    for field in found.dtype.names:
        clean[field] = found[field]
    written = io.BytesIO()
    np.save(written, clean, allow_pickle=False)
    return written.getvalue()
