"""Target of a selection, and the split into rows to learn from and rows to certify on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._ids import check_cluster
from evenhand._validate import Floats, InputError, Ints, bad_input, check_fraction
from evenhand.draws import one_row_each
from evenhand.links import Link, make_link, price_of_proof
from evenhand.tables import take_rows


@dataclass(frozen=True)
class Target:
    """Largest group error to be certified, and the family of links to choose from."""

    max_group_error: float
    group_mass: float
    confidence: float
    family: Link

    @classmethod
    def checked(
        cls, max_group_error: float, group_mass: float, confidence: float, link: str
    ) -> Target:
        """Make a target from what a caller asks for, and refuse what no model can meet."""
        check_fraction("max_group_error", max_group_error)
        if max_group_error >= 0.5:
            raise bad_input("max_group_error", "be below 0.5, the worst there is", max_group_error)
        check_fraction("group_mass", group_mass, high_open=False)
        check_fraction("confidence", confidence)
        family = make_link(link, 1.0)
        return cls(float(max_group_error), float(group_mass), float(confidence), family)


@dataclass(frozen=True)
class SplitRows:
    """Rows to learn from (none for a prefit model), and rows, one per person, to certify on."""

    X: Any
    y: Floats
    learn: Ints
    certify: Ints
    share: float | None
    one_row_each: bool

    def learning(self) -> tuple[Any, Floats]:
        """Rows and outcomes to learn from."""
        return take_rows(self.X, self.learn), self.y[self.learn]

    def certifying(self) -> tuple[Any, Floats]:
        """Rows and outcomes to certify on."""
        return take_rows(self.X, self.certify), self.y[self.certify]


def split_rows(
    X: Any,
    y: Floats,
    cluster: ArrayLike | None,
    share: float | None,
    least: int,
    random: np.random.Generator,
) -> SplitRows:
    """Keep a share of the people for certifying, chosen at random; all of them if it is None."""
    people = np.arange(y.size) if cluster is None else check_cluster(cluster, y.size)
    n_people = int(people.max()) + 1
    n_kept = n_people if share is None else int(np.ceil(share * n_people))
    # people are split, not rows: a person on both sides would be certified from memory
    kept = np.zeros(n_people, dtype=np.bool_)
    kept[random.permutation(n_people)[:n_kept]] = True
    held = np.flatnonzero(kept[people])
    learn = np.flatnonzero(~kept[people])
    # a model fitted on rows that certify it would be certified falsely
    if share is not None and min(learn.size, n_kept) < least:
        several = "" if cluster is None else f" of {n_people:,} people in cluster"
        rule = (
            f"leave at least {least} row{'s' * (least > 1)} to learn from and as many people to"
            " certify on"
        )
        got = (
            f"{learn.size:,} and {n_kept:,} at certify_share={share:g} of {y.size:,} rows{several}"
        )
        raise bad_input("certify_share", rule, got, "choose another share, or bring more people")
    # one row per person: bounds need independent rows
    if cluster is not None:
        held = held[one_row_each(people[held], held.size, random)]
    return SplitRows(X, y, learn, np.sort(held), share, cluster is not None)


@contextmanager
def naming_the_split(rows: SplitRows) -> Iterator[None]:
    """Name the split in errors of a model, where it left fewer than 100 rows to learn from."""
    try:
        yield
    except InputError as error:
        if rows.share is None or rows.learn.size >= 100:
            raise
        part = f"{rows.learn.size} of {rows.y.size:,} rows at certify_share={rows.share:g}"
        raise InputError(f"learning from {part}: {error}") from error


def least_price(error: float) -> float:
    """Least price in nats of any forecaster with this mean pathwise error."""
    # without any draw the mean error of the truth is 1/3: a larger one costs nothing
    return float(price_of_proof(min(error, 1 / 3)))
