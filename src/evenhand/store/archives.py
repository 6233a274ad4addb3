"""Bounds on the unpacked size of stored parts, so that a small file cannot fill the memory."""

from __future__ import annotations

import io
import math
import zipfile

import numpy as np

from evenhand._validate import InputError

MOST_RATIO = 100
LEAST_BOUND = 16 * 2**20
MOST_UNPACKED = 64 * 2**30
"""A part may unpack to 100 times its size or 16 MiB, whichever is more, but at most 64 GiB.

Parts are stored uncompressed except for sparse matrices, which are rarely 10 times smaller than in
memory.
"""

MOST_MEMBERS = 1_000_000
"""Largest number of archive members in a part; each array is one member."""


def check_archive(content: bytes) -> None:
    """Refuse an archive whose declared or actual size exceeds its bound.

    An array that declares more values than it contains is refused as well.
    """
    # proportional to the file: small archives that unpack to gigabytes are zip bombs
    bound = min(max(MOST_RATIO * len(content), LEAST_BOUND), MOST_UNPACKED)
    _check_members(content, bound, inside=False)


def _check_members(content: bytes, bound: int, *, inside: bool) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise InputError(f"it has {len(members):,} members, more than {MOST_MEMBERS:,}")
        for member in members:
            # other compressions cannot be read in bounded pieces
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(
                    f"its member {member.filename!r} has a compression that models do not use"
                )
        declared = sum(member.file_size for member in members)
        if declared > bound:
            raise InputError(f"it unpacks to {declared:,} bytes, more than {bound:,}")
        for member in members:
            if inside or member.filename.endswith(".npy"):
                _check_array(archive, member)
            # declared sizes can be wrong, so the bytes that are read are counted
            bound -= _unpacked(archive, member, bound)
            if member.filename.endswith(".npz") and not inside:
                _check_members(archive.read(member), bound, inside=True)


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, bound: int) -> int:
    """Count the bytes of a member, read in pieces that fit into memory."""
    n_bytes = 0
    with archive.open(member) as stream:
        while piece := stream.read(2**20):
            n_bytes += len(piece)
            if n_bytes > bound:
                raise InputError(
                    f"its member {member.filename!r} unpacks to more than {bound:,} bytes"
                )
    return n_bytes


def _check_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    n_bytes = math.prod(shape) * max(dtype.itemsize, 1)
    # NumPy allocates the declared size before it reads
    if n_bytes > member.file_size and not dtype.hasobject:
        raise InputError(
            f"its array {member.filename!r} declares {n_bytes:,} bytes but contains"
            f" {member.file_size:,}"
        )
