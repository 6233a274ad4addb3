"""Certificate of a randomization that was chosen by its cost, one of several (outcomes: 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.certificates import FixedSequenceCertificate


@dataclass(frozen=True)
class SimultaneousCertificate(FixedSequenceCertificate):
    """Bound of the group error of one of several links that holds for all of them (Bonferroni).

    Each of `n_links` links has a bound that holds with probability `1 - (1 - confidence) /
    n_links`, so all of them hold with `confidence`, and any of the links may be chosen on the same
    people, by what it costs. `target` is the bound of the chosen one.

    Parameters
    ----------
    target : float
        Bound for the error of every group of the chosen link.
    mass : float
        Smallest share of people in a group.
    confidence : float
        Probability that the bounds of all links hold.
    n_people : int
        Number of people from whose rows the bounds were computed.
    one_row_each : bool
        Whether people have several rows and one row per person was used.
    kind : OutcomeKind
        Kind of outcome that the forecasts describe.
    link : Link or None
        The chosen link.
    n_links : int
        Number of links, fixed beforehand.
    """

    n_links: int = 1

    assumptions = (
        # of the sample, and after the order of the tests, of the draws
        FixedSequenceCertificate.assumptions[0],
        "the deterministic forecaster and the links compared were fixed without using these rows",
        *FixedSequenceCertificate.assumptions[2:],
    )

    def _forecasts(self) -> str:
        return f"under one of {self.n_links} links, whose bounds hold simultaneously"
