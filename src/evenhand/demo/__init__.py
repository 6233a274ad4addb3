"""Demonstrations: find, repair and prove on a generated table, and on a small real one."""

from evenhand.demo.choice import TABLES, run
from evenhand.demo.result import Finished

__all__ = ["TABLES", "Finished", "run"]
