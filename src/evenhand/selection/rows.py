"""Split of the rows into training rows and certifying rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand._validate import Floats, InputError, Ints
from evenhand.calibration import Outcomes, thinned_rows
from evenhand.certificates import Thinned
from evenhand.draws import one_row_each
from evenhand.links import price_of_proof
from evenhand.tables import take_rows


@dataclass(frozen=True)
class SplitRows:
    """Training rows (none for a prefit model) and certifying rows, one per person.

    Weights are those of the training rows: certifying rows count once each.
    """

    X: Any
    outcomes: Outcomes
    learn: Ints
    certify: Ints
    share: float | None
    thinned: Thinned | None = None

    @property
    def y(self) -> Floats:
        """Outcomes of all rows, shape (n,)."""
        return self.outcomes.value

    def learning(self) -> tuple[Any, Outcomes]:
        """Return the training rows and their outcomes."""
        return take_rows(self.X, self.learn), self.outcomes.take(self.learn)

    @property
    def one_row_each(self) -> bool:
        """Whether people have several rows, of which one certifies."""
        return self.outcomes.person is not None

    def certifying(self) -> tuple[Any, Outcomes]:
        """Return the certifying rows and their outcomes."""
        return take_rows(self.X, self.certify), self.outcomes.take(self.certify)


def split_rows(
    X: Any,
    outcomes: Outcomes,
    share: float | None,
    least: int,
    random: np.random.Generator,
) -> SplitRows:
    """Hold out a random share of the people for the certificate; all of them if it is None.

    Of times only people certify who entered at least a horizon before the end of follow-up,
    whatever happened to them (outcomes: 5); of rows with the largest weight of a design a part that
    needs no weights (method: 12).
    """
    n, person = outcomes.n_samples, outcomes.person
    people = np.arange(n) if person is None else person
    n_people = int(people.max()) + 1
    n_kept = n_people if share is None else int(np.ceil(share * n_people))
    # people are split, not rows: a person in both parts would be certified on training data
    kept = np.zeros(n_people, dtype=np.bool_)
    kept[random.permutation(n_people)[:n_kept]] = True
    held = np.flatnonzero(kept[people])
    learn = np.flatnonzero(~kept[people])
    # too small a part of the rows could be neither trained nor certified on
    if share is not None and min(learn.size, n_kept) < least:
        several = "" if person is None else f" of {_people(n_people)}"
        raise InputError(
            f"{n:,} rows{several} are split into {learn.size:,} training rows and"
            f" {_people(n_kept)} to certify on, but each part needs at least {least}; provide more"
            f" people (in Python: or another certify_share than {share:g})"
        )
    # one row per person, because bounds need independent rows
    if person is not None:
        held = held[one_row_each(people[held], held.size, random)]
    held = np.sort(held)
    thinned = None
    if outcomes.weight is not None and outcomes.largest_weight is not None:
        n_given, seed = held.size, int(random.integers(2**32))
        held = held[thinned_rows(outcomes.weight[held], outcomes.largest_weight, seed)]
        thinned = Thinned(held.size, n_given, seed)
    if outcomes.are_times:
        held = held[outcomes.is_followed[held]]
    return SplitRows(X, outcomes, learn, held, share, thinned)


def _people(n: int) -> str:
    return "1 person" if n == 1 else f"{n:,} people"


@contextmanager
def naming_the_split(rows: SplitRows) -> Iterator[None]:
    """Mention the split in a model's errors if there are fewer than 100 training rows."""
    try:
        yield
    except InputError as error:
        if rows.share is None or rows.learn.size >= 100:
            raise
        part = f"{rows.learn.size} of {rows.y.size:,} rows, as the others certify the model"
        raise InputError(f"training on {part}: {error}") from error


def least_price(error: float) -> float:
    """Return the minimum price in nats of any forecaster with this mean pathwise error."""
    # the true distribution without draws has a mean error of 1/3: larger errors are free
    return float(price_of_proof(min(error, 1 / 3)))
