"""E-processes: evidence against bounds of means, valid however often it is read (outcomes: 6)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import convert
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Ints, Mask
from evenhand.monitoring.rows import Rows, as_time

# --- states: values that are declared as fields, as JSON values and back


class Stored:
    """Object with a state: the attributes that its class declares, as JSON values and back."""

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values, exact to the last bit."""
        values = {name: getattr(self, name) for name in self._declared()}
        return json.loads(json.dumps(values, default=_plain))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state` of an object that was made with the same arguments."""
        for name, declared in self._declared().items():
            setattr(self, name, read(name, declared, state[name], getattr(self, name)))

    @classmethod
    @cache
    def _declared(cls) -> dict[str, Any]:
        hints = get_type_hints(cls)
        return {name: one for name, one in hints.items() if get_origin(one) is not ClassVar}


def _plain(value: Any) -> Any:
    """Return a value that JSON does not have as one that it has."""
    for name in ("to_state", "to_dict", "tolist"):
        if hasattr(value, name):
            return getattr(value, name)()
    return asdict(value) if is_dataclass(value) else str(value)  # type: ignore[arg-type]


def read(name: str, declared: Any, value: Any, now: Any = None) -> Any:
    """Return JSON values as a declared type, or as the state of the object that is there now."""
    if isinstance(now, Stored):
        now.restore(value)
        return now
    if isinstance(now, dict) and now:
        # keys that are there already must be in the state
        inner = get_args(declared)[1]
        return {key: read(key, inner, value[key], one) for key, one in now.items()}
    if value is None and now is None:
        return None
    rebuild = [one.from_dict for one in get_args(declared) if hasattr(one, "from_dict")]
    found = rebuild[0](value) if rebuild else convert(value, declared, dec_hook=_decoded)
    if isinstance(now, np.ndarray) and found.shape != now.shape:
        raise ValueError(f"{name} has the shape {found.shape}, not {now.shape}")
    return found


def _decoded(declared: Any, value: Any) -> Any:
    """Return JSON values as an array or a time, the types that msgspec does not have."""
    if declared is np.datetime64:
        return as_time("time", value)
    return np.array(value, dtype=get_args(get_args(declared)[1])[0])


# --- e-processes

STAKES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Share of the capital that a row can lose, one for each of the mixed stakes."""

CHUNK = 1 << 17
"""Number of factors that are computed at once: few enough for the processor's cache."""

NOTHING = -1e300
"""Logarithm in place of that of 0, which JSON does not have."""


class EProcesses(Stored):
    """E-processes for bounds of conditional means, with a prior over the period of a change.

    Process j tests the null hypothesis that every row has `E[x_j | earlier rows] <= bound_j`, for
    values `x_j >= low_j`. Under it, the evidence of process j ever reaches `1 / gamma`, over an
    unbounded time and after whichever row, with a probability of at most `gamma` (Ville's
    inequality). A mean of processes has the same property for the hypothesis that all their bounds
    hold, a minimum for the hypothesis that at least one of them holds.

    For every start period d and stake k there is a product of `1 + lambda_k (x - bound)` over the
    rows from d on, with `lambda_k = STAKES[k] / (bound - low)`. The evidence is their mean with
    weights `1 / (d (d + 1))` of start periods and equal weights of stakes; products that have not
    started count 1. Capital is kept as logarithms and summed row by row, so that the same rows give
    identical numbers, however they are split into calls.

    Parameters
    ----------
    low : array-like of shape (J,)
        Least values.
    bound : array-like of shape (J,)
        Bounds of the means, above `low`.

    Attributes
    ----------
    period : int
        Number of the current period, from 1; 0 before the first.
    """

    period: int
    # per stake, when the period began: log S_k, and the largest log product over all starts with
    # its start period; then the log product of the period's rows, which changes both alike
    log_sums: Floats
    peaks: Floats
    starts: Ints
    gains: Floats

    def __init__(self, low: ArrayLike, bound: ArrayLike) -> None:
        self.low = np.array(low, dtype=float)
        self.bound = np.array(bound, dtype=float)
        self.period = 0
        shape = (self.low.size, len(STAKES))
        self.log_sums = np.full(shape, NOTHING)
        self.peaks = np.full(shape, NOTHING)
        self.starts = np.zeros(shape, dtype=int)
        self.gains = np.zeros(shape)

    @property
    def log_evidence(self) -> Floats:
        """Logarithm of the evidence after the last row, shape (J,)."""
        return self._mixed((self.log_sums + self.gains)[..., None])[..., 0]

    @property
    def since(self) -> Ints:
        """Period from which on the evidence is largest, shape (J,); 0 before the first period.

        It maximizes the product over start periods and stakes, as a CUSUM does.
        """
        best = (self.peaks + self.gains).argmax(axis=-1)
        return np.take_along_axis(self.starts, best[:, None], axis=-1)[:, 0]

    def begin_period(self) -> None:
        """Begin the next period, also if it has no rows: its weight joins the sums."""
        self.period += 1
        weight = -np.log(self.period * (self.period + 1.0))
        self.log_sums = np.logaddexp(self.log_sums + self.gains, weight)
        self.peaks = self.peaks + self.gains
        self.gains = np.zeros(self.gains.shape)
        # a product that has not gained anything since its start is beaten by a new one
        is_new = self.peaks <= 0
        self.peaks[is_new] = 0.0
        self.starts = np.where(is_new, self.period, self.starts)

    def update(self, x: ArrayLike) -> Floats:
        """Add rows of the current period, (n, J), and return the log evidence after each, (n, J).

        NaN is where a row does not count in a process. The hypothesis is then about the counted
        rows: given the past, and that it is counted, a row's mean is at most the bound.
        """
        excess = np.asarray(x, dtype=float) - self.bound
        excess[np.isnan(excess)] = 0.0
        path = np.empty(excess.shape)
        step = max(1, CHUNK // max(1, self.log_sums.size))
        for first in range(0, len(excess), step):
            rows = slice(first, first + step)
            path[rows] = self._add(excess[rows])
        return path

    def extend(self, low: Floats, bound: Floats) -> None:
        """Add processes without rows: the same as if they had been there from the start."""
        new = EProcesses(low, bound)
        for _ in range(self.period):
            new.begin_period()
        for name in ("low", "bound", "log_sums", "peaks", "starts", "gains"):
            setattr(self, name, np.concatenate((getattr(self, name), getattr(new, name))))

    def _add(self, excess: Floats) -> Floats:
        """Add rows to all sums; the evidence after each row, (n, J)."""
        stakes = np.array(STAKES) / (self.bound - self.low)[:, None]
        # (J, K, 1 + n): the sum over rows runs along the last axis, one row after another
        gains = np.empty((*stakes.shape, 1 + len(excess)))
        gains[..., 0] = self.gains
        np.multiply(stakes[..., None], excess.T[:, None, :], out=gains[..., 1:])
        np.log1p(gains[..., 1:], out=gains[..., 1:])
        np.cumsum(gains, axis=-1, out=gains)
        self.gains = gains[..., -1].copy()
        gains += self.log_sums[..., None]
        return self._mixed(gains[..., 1:]).T

    def _mixed(self, log_sums: Floats) -> Floats:
        """Log mean over stakes, (J, K, n) -> (J, n), with the weight 1/(d + 1) of later starts."""
        top = np.maximum(log_sums.max(axis=-2), 0.0)
        scaled = log_sums - top[:, None, :]
        np.exp(scaled, out=scaled)
        total = scaled.sum(axis=-2) / len(STAKES)
        return top + np.log(total + np.exp(-top) / (self.period + 1.0))


# --- tests of a statement in sets of rows

Direction = Literal["higher", "lower", "narrow", "wide", "extreme", "central", "gap"]

DIGITS = 4
"""Decimals of the evidence that is kept per period, for drawings."""


@dataclass(frozen=True)
class Statement:
    """Bounds of the conditional means of J values per row, which hold if forecasts are right.

    Parameters
    ----------
    directions : tuple of str, length J
        What a mean above each bound means.
    low, bound : ndarray of shape (J,)
        Least values and bounds of the means.
    values : callable
        Returns the values of n `Rows`, (n, J): the least where the outcome is missing, which is
        least favourable to an alarm, and NaN where the statement is not about a row.
    reduce : {"mean", "min"}, default "mean"
        Evidence against the statement, of that against its bounds: their mean if all hold, their
        minimum if the statement is that at least one of them does.
    """

    directions: tuple[Direction, ...]
    low: Floats
    bound: Floats
    values: Callable[[Rows], Floats]
    reduce: Literal["mean", "min"] = "mean"

    def log_evidence(self, path: Floats) -> Floats:
        """Return the log evidence against the statement in G sets, (n, G * J) -> (n, G)."""
        shape = (len(path), path.shape[-1] // len(self.directions), len(self.directions))
        logs = np.ascontiguousarray(path).reshape(shape)
        if self.reduce == "min":
            return logs.min(axis=-1)
        return np.logaddexp.reduce(logs, axis=-1) - np.log(len(self.directions))

    def decisive(self, path: Floats) -> Ints:
        """Return the value that decides, or adds most, in each set, (G * J,) -> (G,)."""
        logs = path.reshape(-1, len(self.directions))
        return logs.argmin(axis=-1) if self.reduce == "min" else logs.argmax(axis=-1)


Part = Literal["promise", "group", "draws"]


@dataclass(frozen=True)
class Alarm:
    """Evidence that reached its threshold: a promise or tolerance is broken, or draws are not fair.

    Parameters
    ----------
    part : {"promise", "group", "draws"}
        What was tested: the promise for every group of a size, the tolerance of a named group, or
        whether draws are uniform.
    group : str or None
        Name of the group; None if all rows were tested.
    direction : {"higher", "lower", "narrow", "wide", "extreme", "central", "gap"}
        Outcomes higher or lower than forecast, forecasts too narrow or too wide; draws too high,
        too low, too often near 0 and 1 or near 1/2; PITs too far from their draws.
    date : str
        Start of the period in which the threshold was reached.
    since : str
        Start of the period from which on the evidence was largest: about when the change began.
    log_evidence : float
        Logarithm of the evidence when it reached the threshold.
    threshold : float
        Logarithm of the threshold.
    n_rows : int
        Number of rows of the group until then.
    """

    part: Part
    group: str | None
    direction: Direction
    date: str
    since: str
    log_evidence: float
    threshold: float
    n_rows: int


class Tests(Stored):
    """Tests of a statement in G sets of rows, each with its own threshold.

    Parameters
    ----------
    statement : Statement
        The statement.
    part : {"promise", "group", "draws"}
        What the statement is about.
    risk : float
        Probability of a false alarm that all sets share.

    Attributes
    ----------
    names : list of str or None, length G
        Names of the sets; None for all rows.
    thresholds : ndarray of shape (G,)
        Logarithms of the thresholds.
    n_rows, largest, has_alarm : ndarray of shape (G,)
        Rows of each set so far, largest log evidence, and whether the threshold was reached.
    history : list of lists of float
        For each set the log evidence at the end of each period before the current one.
    """

    __test__: ClassVar[bool] = False  # not a class of tests for pytest
    n_rows: Ints
    largest: Floats
    has_alarm: Mask
    history: list[list[float]]
    processes: EProcesses

    def __init__(self, statement: Statement, part: Part, risk: float) -> None:
        self.statement = statement
        self.part = part
        self.risk = risk
        self.names: list[str | None] = []
        self.thresholds: Floats = np.zeros(0)
        self.n_rows = np.zeros(0, dtype=int)
        self.largest = np.zeros(0)
        self.has_alarm = np.zeros(0, dtype=bool)
        self.history = []
        self.processes = EProcesses([], [])

    @property
    def log_evidence(self) -> Floats:
        """Logarithm of the evidence of each set after the last row, shape (G,)."""
        return self.statement.log_evidence(self.processes.log_evidence[None, :])[0]

    def add(self, names: Sequence[str | None], thresholds: Sequence[float]) -> None:
        """Add sets of rows, none of whose rows has been seen; `thresholds` are logarithms."""
        if not names:
            return
        self.names += names
        self.thresholds = np.append(self.thresholds, thresholds)
        for name in ("n_rows", "largest", "has_alarm"):
            setattr(self, name, np.pad(getattr(self, name), (0, len(names))))
        # without a row the evidence is 1: the set might as well have been there from the start
        self.history += [[0.0] * max(self.processes.period - 1, 0) for _ in names]
        ends = self.statement.low, self.statement.bound
        self.processes.extend(*(np.tile(end, len(names)) for end in ends))

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        if self.processes.period > 0:
            for past, now in zip(self.history, self.log_evidence, strict=True):
                past.append(_rounded(now))
        self.processes.begin_period()

    def update(
        self, x: Floats, members: Mask, date_of: Callable[[int], str]
    ) -> list[tuple[int, Alarm]]:
        """Add rows of the current period and return alarms with the rows that raise them.

        Values of the statement, (n, J), are NaN where it is not about a row; `members` (n, G) are
        the rows of each set, and `date_of` returns the start of a period by its number, from 1.
        """
        # the evidence of a set depends on its own rows alone: they come first in its column
        counts = members.sum(axis=0)
        rows = np.argsort(~members, axis=0, kind="stable")[: counts.max(initial=0)]
        n_values = x.shape[-1]
        is_padding = np.arange(len(rows))[:, None] >= counts
        values = np.where(is_padding[..., None], np.nan, x[rows])
        values = values.reshape(len(rows), counts.size * n_values)
        # arrays are replaced by an update, never changed
        before = copy.copy(self.processes)
        path = self.statement.log_evidence(self.processes.update(values))
        path[is_padding] = -np.inf
        is_reached = (path >= self.thresholds) & ~self.has_alarm
        found = []
        for j in np.flatnonzero(is_reached.any(axis=0)).tolist():
            end = int(np.argmax(is_reached[:, j])) + 1
            # rows after the crossing would change its direction and start, and the rows that an
            # update brings must not matter
            then = copy.copy(before)
            then.update(values[:end])
            best = int(self.statement.decisive(then.log_evidence)[j])
            alarm = Alarm(
                self.part,
                self.names[j],
                self.statement.directions[best],
                date_of(then.period),
                date_of(int(then.since[j * n_values + best])),
                float(path[end - 1, j]),
                float(self.thresholds[j]),
                int(self.n_rows[j]) + end,
            )
            found.append((int(rows[end - 1, j]), alarm))
        self.has_alarm = self.has_alarm | is_reached.any(axis=0)
        self.n_rows = self.n_rows + counts
        self.largest = np.maximum(self.largest, path.max(axis=0, initial=0.0))
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the evidence of each set at the end of each period, with the present direction."""
        now = self.log_evidence
        decisive = self.statement.decisive(self.processes.log_evidence)
        return [
            {
                "part": self.part,
                "group": name,
                "direction": self.statement.directions[decisive[j]],
                "log_evidence": [*self.history[j], _rounded(now[j])],
                "threshold": float(self.thresholds[j]),
            }
            for j, name in enumerate(self.names)
        ]

    def evidence(self, j: int = 0) -> dict[str, Any]:
        """Return the evidence of a set now and at most, its threshold, and the rows behind it."""
        return {
            "n": int(self.n_rows[j]),
            "is_alarm": bool(self.has_alarm[j]),
            "log_evidence": float(self.log_evidence[j]),
            "max_log_evidence": float(self.largest[j]),
            "threshold": float(self.thresholds[j]),
        }


def _rounded(log_evidence: float) -> float:
    """Return log evidence with the decimals that are kept per period; never -0.0.

    Examples
    --------
    >>> _rounded(2.34567), _rounded(-1e-17)
    (2.3457, 0.0)
    """
    return round(float(log_evidence), DIGITS) + 0.0
