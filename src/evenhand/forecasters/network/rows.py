"""Rows of a training, and their split into rows to learn from and rows for early stopping."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from evenhand._validate import Floats, InputError, Ints, check_fraction
from evenhand.draws import RandomState, generator

MIN_ROWS_TO_SPLIT = 10


@dataclass(frozen=True)
class Rows:
    """Encoded rows with outcomes and weights of mean 1.

    `of` contains the row numbers of each network, shape (n_networks, k); None means all rows.
    """

    x: Floats
    y: Floats
    weight: Floats
    of: Ints | None = None


def split_rows(rows: Rows, fraction: float, random_state: RandomState) -> tuple[Rows, Rows]:
    """Hold out a random share of the training rows for early stopping.

    If there are too few rows, all rows are used for both.
    """
    check_fraction("validation_fraction", fraction)
    n = rows.y.size
    # fewer rows would leave a validation loss of one or two outcomes
    if n < MIN_ROWS_TO_SPLIT:
        return rows, rows
    order = generator(random_state).permutation(n)
    n_validation = min(max(round(fraction * n), 1), n - 1)
    validation = order[:n_validation]
    training = order[n_validation:]
    _check_weights(rows.weight[validation], rows.weight[training])
    kept, held_out = (
        Rows(rows.x[part], rows.y[part], rows.weight[part]) for part in (training, validation)
    )
    return kept, held_out


def split_rows_by_network(
    rows: Rows, fraction: float, n_networks: int, random_state: RandomState
) -> tuple[Rows, Rows]:
    """Hold out a different share of the rows for each network, so that together they use all."""
    check_fraction("validation_fraction", fraction)
    n = rows.y.size
    if n < MIN_ROWS_TO_SPLIT:
        return rows, rows
    n_validation = min(max(round(fraction * n), 1), n - 1)
    order = generator(random_state).permutation(n)
    # the share of each network begins where the share of the previous one ends
    orders = np.stack([np.roll(order, -i * n_validation) for i in range(n_networks)])
    validation = orders[:, :n_validation]
    training = orders[:, n_validation:]
    for one_validation, one_training in zip(validation, training, strict=True):
        _check_weights(rows.weight[one_validation], rows.weight[one_training])
    return replace(rows, of=training), replace(rows, of=validation)


def _check_weights(*parts: Floats) -> None:
    if not all(part.any() for part in parts):
        raise InputError(
            "sample_weight is zero on all training or all validation rows; drop rows of zero weight"
        )


def tensors(rows: Rows, where: torch.device) -> tuple[torch.Tensor, ...]:
    """Return inputs, outcomes and weights as float32 tensors on a device."""
    return tuple(
        torch.as_tensor(array, dtype=torch.float32, device=where)
        for array in (rows.x, rows.y, rows.weight)
    )


def row_numbers(rows: Rows, where: torch.device) -> torch.Tensor:
    """Return the row numbers of each network, (n_networks, k), or (1, k) if all are the same."""
    if rows.of is None:
        return torch.arange(rows.y.size, device=where)[None, :]
    return torch.as_tensor(rows.of, device=where)
