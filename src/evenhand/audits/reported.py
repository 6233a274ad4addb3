"""Texts and pages of audits, and their status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evenhand._files import write_text
from evenhand._format import Summarized
from evenhand.audits.off_groups import OffGroup
from evenhand.audits.plain_audit import plain_audit
from evenhand.report import (
    Note,
    Status,
    audit_brief,
    audit_html,
    audit_text,
    findings_of,
    status_of,
)

if TYPE_CHECKING:
    from evenhand.audits.result import Audit


class Reported(Summarized):
    """Audit that reports its findings."""

    notes: tuple[Note, ...]
    off_groups: tuple[OffGroup, ...] | None

    @property
    def _plain(self) -> dict[str, Any]:
        return plain_audit(cast("Audit", self))

    @property
    def status(self) -> Status:
        """Verdict by evidence: problem found, no problem found or too few rows, with its numbers.

        Conditions of a gate do not change it.
        """
        return status_of(findings_of(self._plain, self.notes))

    def summary(self, *, full: bool = False) -> str:
        """Return the findings as text.

        Parameters
        ----------
        full : bool, default False
            Whether to return all findings and tables; otherwise about 20 lines: the verdict, the
            main findings, what is proven for every group, and what to do next.
        """
        text = audit_text if full else audit_brief
        return text(self._plain, self.notes)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the findings as one self-contained HTML page; write it to `path` if given.

        The page contains nobody's id; `Audit.members` and `Audit.to_csv` list them.
        """
        text = audit_html(self._plain, self.notes)
        if path is not None:
            write_text(path, text)
        return text
