"""The rows of an audit, and the searches over them that may be refused without stopping it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import calibration
from evenhand._checks import Floats, InputError, bad_input, check_fraction, check_weights
from evenhand.audits import _tables
from evenhand.draws import one_row_each
from evenhand.tables import take_rows


@dataclass(frozen=True)
class Search:
    """How groups are searched for: the options of `audit` of the same names."""

    masses: Sequence[float]
    learned_masses: Sequence[float]
    min_size: int
    confidence: float
    n_simulations: int


@dataclass(frozen=True)
class HeldOut:
    """The rows of an audit: one per person, with features, weights and named groups."""

    kept: NDArray[np.intp]
    X: Any
    features: Any
    weight: Floats
    is_weighted: bool
    groups: _tables.Masks
    notes: list[str]


def hold_out(
    n: int, X: Any, features: Any, groups: Any, sample_weight: Any, cluster: Any, random: np.random.Generator
) -> HeldOut:
    searched = _searched(X, n, "X") if features is None else _searched(features, n, "features")
    weight = check_weights(sample_weight, n)
    masks = _tables.named_groups(groups, searched if X is None else X, n)
    if cluster is None:
        return HeldOut(np.arange(n), X, searched, weight, sample_weight is not None, masks, [])
    kept = one_row_each(cluster, n, random)
    left = {name: mask[kept] for name, mask in masks.items() if mask[kept].any()}
    notes = [f"one row of each of {kept.size:,} people is audited, of {n:,} rows"]
    notes += [f"no row of group {name!r} is left" for name in masks if name not in left]
    X, searched = (None if table is None else take_rows(table, kept) for table in (X, searched))
    weight = check_weights(weight[kept], kept.size)
    return HeldOut(kept, X, searched, weight, sample_weight is not None, left, notes)


def _searched(features: Any, n: int, name: str) -> Any:
    """Features as a pandas table or an array with a row per outcome."""
    if features is None:
        return None
    if hasattr(features, "columns"):
        import narwhals as nw

        features = nw.from_native(features).to_pandas()
    else:
        features = np.asarray(features)
    if len(features) != n:
        raise bad_input(name, f"have one row per outcome ({n})", f"{len(features)} rows")
    if features.ndim != 2:
        raise bad_input(name, "have rows and columns", f"shape {features.shape}")
    return features


def certificate(
    pit: Floats,
    r: Floats | None,
    held: HeldOut,
    confidence: float,
    random: np.random.Generator,
) -> calibration.Certificate | None:
    check_fraction("confidence", confidence)
    if held.is_weighted:
        held.notes.append("no certificate: rows with weights are not a sample of the people")
        return None
    with _noted("no certificate", held.notes):
        return calibration.certify_pit(pit, r, confidence=confidence, groups=held.groups, random_state=random)
    return None


def scan_groups(
    pit: Floats, residual: Floats | None, held: HeldOut, search: Search, random: np.random.Generator
) -> pd.DataFrame:
    empty = pd.DataFrame(columns=list(_tables.SCAN_COLUMNS))
    if held.features is None:
        return empty
    with _noted("no groups were scanned", held.notes):
        found = calibration.scan_groups(
            pit,
            held.features,
            search.min_size,
            groups=held.groups,
            residual=residual,
            sample_weight=held.weight if held.is_weighted else None,
            random_state=random,
        )
        left_out = found.attrs["left_out"]
        held.notes.extend(f"column {column!r} was not scanned: {why}" for column, why in left_out.items())
        return found
    return empty


def learn_groups(
    pit: Floats, residual: Floats | None, held: HeldOut, search: Search, random: np.random.Generator
) -> pd.DataFrame:
    found = []
    if held.features is not None:
        for mass in search.learned_masses:
            with _noted(f"no group of {mass:.0%} was learned", held.notes):
                group = calibration.find_group(
                    pit, held.features, mass, confidence=search.confidence, residual=residual, random_state=random
                )
                found.append(group)
    return _tables.learned_table(found)


@contextmanager
def _noted(what: str, notes: list[str]) -> Iterator[None]:
    """Turn a refusal of one part of an audit, such as too few rows, into a note; the rest goes on."""
    try:
        yield
    except InputError as error:
        notes.append(f"{what}: {error}")
