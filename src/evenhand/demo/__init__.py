"""Demonstration: find, repair and prove on a generated table."""

from evenhand.demo.doses import run

# parts for tests of other seeds
from evenhand.demo.models import FOUND_SIZES as FOUND_SIZES
from evenhand.demo.models import audited as audited
from evenhand.demo.models import make_tables as make_tables
from evenhand.demo.models import randomized as randomized
from evenhand.demo.models import train as train
from evenhand.demo.models import worst_rule as worst_rule
from evenhand.demo.result import Finished
from evenhand.demo.truth import variant_coverage as variant_coverage

__all__ = ["Finished", "run"]
