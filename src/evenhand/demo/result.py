"""Results of the demonstration, as numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "evenhand.demo/2"


@dataclass(frozen=True)
class Finished:
    """Result of the demonstration: the text to print, and plain values for JSON."""

    text: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Estimate:
    """An estimate and its 95% confidence interval; all are fractions."""

    value: float
    low: float
    high: float

    @classmethod
    def of_coverage(cls, row: pd.Series) -> Estimate:
        """Return the coverage of the 80% intervals in a row of the groups of an audit."""
        return cls(*(float(row[f"coverage_80{end}"]) for end in ("", "_low", "_high")))


@dataclass(frozen=True)
class Found:
    """What the audit of the model found.

    Parameters
    ----------
    n : int
        Number of audited patients.
    coverage : Estimate
        Coverage of the 80% intervals for all of them.
    group : str
        Rule of the worst group.
    share : float
        Share of the audited patients in this group.
    error, error_low : float
        Estimated calibration error of the group, and its lower bound.
    """

    n: int
    coverage: Estimate
    group: str
    share: float
    error: float
    error_low: float


@dataclass(frozen=True)
class Change:
    """Coverage of the 80% intervals in a group of fresh patients, before and after the repair."""

    group: str
    n: int
    before: Estimate
    after: Estimate


@dataclass(frozen=True)
class Repaired:
    """What the repair changed, on patients that neither model nor repair has seen.

    Parameters
    ----------
    n_repair, n_fresh : int
        Number of patients that the repair learned from, and of fresh patients.
    changes : tuple of Change
        All fresh patients, and those of the worst group.
    n_scanned, n_off_before, n_off_after : int
        Scanned groups of fresh patients, and how many are significantly off.
    """

    n_repair: int
    n_fresh: int
    changes: tuple[Change, ...]
    n_scanned: int
    n_off_before: int
    n_off_after: int


@dataclass(frozen=True)
class Served:
    """A forecaster in step 3, with its intervals.

    Parameters
    ----------
    name : {"before", "repaired", "wider", "randomized", "without features"}
        The forecaster; "wider" is an interval of the repaired model at a higher level.
    level : float
        Level of its intervals.
    floor, ceiling : float or None
        Bounds for their coverage in every group; None if nothing is proven.
    width : float
        Mean width, in units of the outcome.
    log_score : float or None
        Mean log score in nats; None for an interval alone.
    variant : float or None
        True coverage for the patients with the variant that no column records, in expectation over
        draws; None if it was not computed.
    """

    name: str
    level: float
    floor: float | None
    ceiling: float | None
    width: float
    log_score: float | None
    variant: float | None


@dataclass(frozen=True)
class Proven:
    """What is proven for every group with the least randomization, and its price.

    Parameters
    ----------
    n : int
        Number of patients that the certificate was computed on.
    group_size, group_error : float
        Smallest group size, and the bound for the error of every such group.
    alpha : float
        The randomization.
    price : float
        Price in log score, nats.
    wider : float
        Mean width of the randomized 80% intervals, relative to that without a draw, minus 1.
    served : tuple of Served
        The forecasters to be compared.
    """

    n: int
    group_size: float
    group_error: float
    alpha: float
    price: float
    wider: float
    served: tuple[Served, ...]


@dataclass(frozen=True)
class Story:
    """Numbers of the demonstration.

    `variant_share` is the share of patients with the variant, known as the table is generated.
    """

    n_trial: int
    n_clinics: int
    variant_share: float
    found: Found
    repaired: Repaired
    proven: Proven


@dataclass(frozen=True)
class Written:
    """Files of the demonstration, by name, in the order in which they are listed."""

    out: Path
    files: tuple[str, ...]
    report: str


def values_of(result: Story, written: Written) -> dict[str, Any]:
    """Return a result as plain values for JSON."""
    files = {"out": str(written.out), "files": list(written.files), "report": written.report}
    return {"schema": SCHEMA, "table": "doses", **files, **asdict(result)}
