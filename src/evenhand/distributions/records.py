"""Parameters of single distributions as JSON values, for logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from evenhand._validate import Floats, InputError, Ints, Mask, bad_input, check_choice
from evenhand.distributions.base import Distribution
from evenhand.distributions.categorical import Bernoulli, Categorical
from evenhand.distributions.counts import NegativeBinomial, Poisson
from evenhand.distributions.hurdle import NEGLIGIBLE, Hurdle
from evenhand.distributions.normal import Normal, NormalMixture, Samples
from evenhand.distributions.quantiles import Quantiles
from evenhand.distributions.randomized import Randomized
from evenhand.distributions.recalibrated import Recalibrated
from evenhand.distributions.support import Support, Transformed, Truncated
from evenhand.distributions.survival import SurvivalCurves
from evenhand.distributions.wrappers import Joined, LocationScale, Wrapper
from evenhand.links import make_link

Record = dict[str, Any]

FAMILY_NAMES: dict[str, type[Distribution]] = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "negative_binomial": NegativeBinomial,
    "normal": Normal,
    "normal_mixture": NormalMixture,
    "poisson": Poisson,
    "quantiles": Quantiles,
    "samples": Samples,
    "survival_curves": SurvivalCurves,
}
"""Families that a record describes by its own arrays, which are named in `event_dims`."""

WRAPPER_NAMES: dict[str, type[Wrapper]] = {
    "hurdle": Hurdle,
    "location_scale": LocationScale,
    "randomized": Randomized,
    "recalibrated": Recalibrated,
    "transformed": Transformed,
    "truncated": Truncated,
}
"""Distributions that a record describes by the record of another one, and more."""

SHARED = {
    "hurdle": ("at", "end"),
    "randomized": ("link", "alpha"),
    "transformed": ("support",),
    "truncated": ("support",),
}
"""Parameters that all distributions of a batch have in common."""


def to_records(distribution: Distribution) -> list[Record]:
    """Return the parameters of each distribution of a batch, as JSON values.

    Parameters
    ----------
    distribution : Distribution
        Batch of shape (n,).

    Returns
    -------
    list of dict
        A record for each distribution, which does not depend on the others of the batch: `family`
        and its parameters, finite numbers. The families of the package and their wrappers are
        stored exactly.

    Raises
    ------
    InputError
        If the batch has another shape, or its family is not one of the package.

    Examples
    --------
    >>> records = to_records(Normal([0.0, 10.0], 2.0))
    >>> records[1]
    {'family': 'normal', 'loc': 10.0, 'scale': 2.0}
    >>> from_records(records).cdf(10.0).round(3)
    array([1. , 0.5])
    """
    shape = distribution.batch_shape
    if len(shape) != 1:
        remedy = "give one draw per person"
        raise bad_input("distribution", "have one axis, shape (n,)", f"shape {shape}", remedy)
    return _records(distribution, shape[0])


def _records(batch: Distribution, n: int) -> list[Record]:
    """Return the records of a batch that broadcasts to shape (n,)."""
    if isinstance(batch, Joined):
        return _of_joined(batch, n)
    # the exact type: a subclass may compute another distribution from the same arrays
    known = (FAMILY_NAMES | WRAPPER_NAMES).items()
    family = next((name for name, kind in known if type(batch) is kind), None)
    if family is None:
        raise bad_input("distribution", "be a family of the package", type(batch).__name__)
    arrays, shared = _arrays(batch, n), _shared(batch)
    records: list[Record] = [
        {"family": family, **{name: column[row] for name, column in arrays.items()}, **shared}
        for row in range(n)
    ]
    if not isinstance(batch, Wrapper):
        return records
    inner = _records(getattr(batch, batch.inner), n)
    # the part of a hurdle is truncated in all rows of a batch if one row needs it: the others
    # have the record of the base
    is_changed = _is_cut(batch, n) if isinstance(batch, Truncated) else np.ones(n, dtype=bool)
    return [
        {**record, batch.inner: one} if changed else one
        for record, one, changed in zip(records, inner, is_changed, strict=True)
    ]


def _rows(array: Any, n: int, dims: int = 0) -> list[Any]:
    """Return the numbers of each row of a batch array with `dims` axes after those of the batch."""
    values = np.asarray(array)
    shape = (n, *values.shape[values.ndim - dims :])
    return cast("list[Any]", np.broadcast_to(values, shape).tolist())


def _arrays(batch: Distribution, n: int) -> dict[str, list[Any]]:
    """Return the parameters of which each row has its own."""
    if isinstance(batch, Recalibrated):
        which = () if batch.which is None else (np.broadcast_to(batch.which, n),)
        return {name: _rows(getattr(batch, name)[which], n, 1) for name in ("levels", "values")}
    return {name: _rows(getattr(batch, name), n, dims) for name, dims in batch.event_dims.items()}


def _shared(batch: Distribution) -> Record:
    """Return the parameters that all rows have in common."""
    match batch:
        case Randomized():
            return {"link": batch.link.name, "alpha": float(batch.link.alpha)}
        case Hurdle():
            return {"at": batch.at, "end": batch.end}
        case Transformed() | Truncated():
            return {"support": batch.support.to_state()}
    return {}


def _of_joined(batch: Joined, n: int) -> list[Record]:
    found: dict[int, Record] = {}
    for rows, part in batch.parts:
        found |= zip(rows.tolist(), _records(part, rows.size), strict=True)
    # a batch of one row is shared by all
    return [found[row if len(found) > 1 else 0] for row in range(n)]


def _is_cut(batch: Truncated, n: int) -> Mask:
    """Return whether truncation changes each distribution."""
    support = batch.support
    outside = np.maximum(batch.base.logcdf(support.low), batch.base.logsf_left(support.high))
    return np.broadcast_to((outside > NEGLIGIBLE) | (support.edge > 0), n)


def from_records(records: Sequence[Mapping[str, Any]]) -> Distribution:
    """Rebuild a batch of distributions, shape (n,), from the output of `to_records`.

    Parameters
    ----------
    records : sequence of dict
        One record per distribution; their families may differ, but not their kind of outcome.

    Raises
    ------
    InputError
        If there are no records, or one of them is not the output of `to_records`.

    Examples
    --------
    >>> mixed = [{"family": "normal", "loc": 1.0, "scale": 1.0},
    ...          {"family": "samples", "values": [1.0, 2.0, 3.0]}]
    >>> from_records(mixed).mean()
    array([1., 2.])
    """
    if len(records) == 0:
        raise InputError("records is empty; give at least one")
    rows: dict[Any, list[int]] = {}
    for row, record in enumerate(records):
        rows.setdefault(_form(record, f"records[{row}]"), []).append(row)
    parts: list[tuple[Ints, Distribution]] = []
    for chosen in rows.values():
        try:
            parts.append((np.array(chosen), _built([records[row] for row in chosen])))
        except (KeyError, TypeError, ValueError) as error:
            raise _no_record(f"records[{chosen[0]}]", error) from error
    return parts[0][1] if len(parts) == 1 else Joined(parts)


def _form(record: Any, place: str) -> Any:
    """Return what records must have in common to be one batch."""
    if not isinstance(record, Mapping) or not isinstance(record.get("family"), str):
        got = type(record).__name__ if not isinstance(record, Mapping) else "no family"
        raise bad_input(place, "be the record of a distribution", got)
    family = check_choice(f"{place} family", record["family"], (*FAMILY_NAMES, *WRAPPER_NAMES))
    try:
        if family in FAMILY_NAMES:
            dims = FAMILY_NAMES[family].event_dims
            return family, *(len(record[name]) if dims[name] else None for name in dims)
        shared = tuple(_hashable(record[name]) for name in SHARED.get(family, ()))
        n_knots = len(record["levels"]) if family == "recalibrated" else None
        return family, shared, n_knots, _form(record[WRAPPER_NAMES[family].inner], place)
    except (KeyError, TypeError) as error:
        raise _no_record(place, error) from error


def _hashable(value: Any) -> Any:
    return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


def _no_record(place: str, error: Exception) -> InputError:
    reason = f"{type(error).__name__}: {error}"
    return InputError(f"{place} is not the record of a distribution ({reason})")


def _built(records: Sequence[Mapping[str, Any]]) -> Distribution:
    family = records[0]["family"]
    if family in FAMILY_NAMES:
        known = FAMILY_NAMES[family]
        return known(*(_column(records, name) for name in known.event_dims))
    inner = _built([record[WRAPPER_NAMES[family].inner] for record in records])
    if family == "hurdle":
        return Hurdle(_column(records, "chance"), inner, records[0]["at"], records[0]["end"])
    if family == "location_scale":
        return LocationScale(inner, _column(records, "loc"), _column(records, "scale"))
    if family == "randomized":
        link = make_link(records[0]["link"], records[0]["alpha"])
        return Randomized(inner, link, _column(records, "r"))
    if family == "recalibrated":
        which = np.arange(len(records))
        return Recalibrated(inner, _column(records, "levels"), _column(records, "values"), which)
    support = Support.from_state(records[0]["support"])
    bounded = Transformed if family == "transformed" else Truncated
    return bounded(inner, support)


def _column(records: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([record[name] for record in records], dtype=np.float64)
