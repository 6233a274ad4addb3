"""Split of the rows into training rows and certifying rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._ids import check_cluster
from evenhand._validate import Floats, InputError, Ints
from evenhand.calibration import CensoredTimes
from evenhand.draws import one_row_each
from evenhand.links import price_of_proof
from evenhand.tables import take_rows


@dataclass(frozen=True)
class SplitRows:
    """Training rows (none for a prefit model) and certifying rows, one per person.

    Weights are those of the training rows: certifying rows count once each.
    """

    X: Any
    y: Floats
    weight: Floats | None
    learn: Ints
    certify: Ints
    share: float | None
    one_row_each: bool
    times: CensoredTimes | None = None

    def learning(self) -> tuple[Any, Floats]:
        """Return the training rows and their outcomes."""
        return take_rows(self.X, self.learn), self.y[self.learn]

    @property
    def learning_weight(self) -> Floats | None:
        """Weights of the training rows, if there are any."""
        return None if self.weight is None else self.weight[self.learn]

    def of_times(self, times: CensoredTimes | None) -> SplitRows:
        """Return rows with times that may be cut off.

        Only people certify who entered at least a horizon before the end of follow-up, whatever
        happened to them (outcomes: 5).
        """
        if times is None:
            return self
        return replace(self, times=times, certify=self.certify[times.is_followed[self.certify]])

    def learning_times(self) -> dict[str, Any]:
        """Return the options of a recalibration about times; none for other outcomes."""
        if self.times is None:
            return {}
        return {"event": self.times.happened[self.learn], "horizon": self.times.horizon}

    @property
    def certifying_times(self) -> CensoredTimes | None:
        """Times of the certifying rows; None for other outcomes."""
        return None if self.times is None else self.times.take(self.certify)

    def certifying(self) -> tuple[Any, Floats]:
        """Return the certifying rows and their outcomes."""
        return take_rows(self.X, self.certify), self.y[self.certify]


def split_rows(
    X: Any,
    y: Floats,
    weight: Floats | None,
    cluster: ArrayLike | None,
    share: float | None,
    least: int,
    random: np.random.Generator,
) -> SplitRows:
    """Hold out a random share of the people for the certificate; all of them if it is None."""
    people = np.arange(y.size) if cluster is None else check_cluster(cluster, y.size)
    n_people = int(people.max()) + 1
    n_kept = n_people if share is None else int(np.ceil(share * n_people))
    # people are split, not rows: a person in both parts would be certified on training data
    kept = np.zeros(n_people, dtype=np.bool_)
    kept[random.permutation(n_people)[:n_kept]] = True
    held = np.flatnonzero(kept[people])
    learn = np.flatnonzero(~kept[people])
    # too small a part of the rows could be neither trained nor certified on
    if share is not None and min(learn.size, n_kept) < least:
        several = "" if cluster is None else f" of {_people(n_people)}"
        raise InputError(
            f"{y.size:,} rows{several} are split into {learn.size:,} training rows and"
            f" {_people(n_kept)} to certify on, but each part needs at least {least}; provide more"
            f" people (in Python: or another certify_share than {share:g})"
        )
    # one row per person, because bounds need independent rows
    if cluster is not None:
        held = held[one_row_each(people[held], held.size, random)]
    return SplitRows(X, y, weight, learn, np.sort(held), share, cluster is not None)


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
