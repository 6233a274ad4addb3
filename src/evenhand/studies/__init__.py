"""Studies: the paper's experiments, rerun with figures and verdicts, and the lending game."""

from __future__ import annotations

from evenhand.studies.credit import run as run_credit
from evenhand.studies.crime import run as run_crime
from evenhand.studies.study import check_folder
from evenhand.studies.toy import run as run_toy

__all__ = ["check_folder", "run_credit", "run_crime", "run_toy"]
