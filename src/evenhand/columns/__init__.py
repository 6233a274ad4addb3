"""Columns of tables: kinds, values seen in training, and groups of rows defined by columns."""

from __future__ import annotations

from evenhand.columns.copies import copies_in_words as copies_in_words
from evenhand.columns.encoding import KINDS as KINDS
from evenhand.columns.encoding import LIMIT as LIMIT
from evenhand.columns.encoding import CategoryColumn, EncodedColumn, TableEncoder
from evenhand.columns.given_groups import (
    LeftOut,
    check_groups,
    check_names,
    feature_groups,
    group_columns,
)
from evenhand.columns.given_groups import are_probabilities as are_probabilities
from evenhand.columns.group_rules import GroupRule
from evenhand.columns.groups import EVERYONE as EVERYONE
from evenhand.columns.groups import Condition, Group, Groups, label
from evenhand.columns.partition import Partition, Seen
from evenhand.columns.schema import Column, Evidence, Schema, found_schema, read_typed
from evenhand.columns.unseen import Tally as Tally
from evenhand.columns.unseen import UnseenValues, UnseenValuesWarning, unreported, warn_unseen
from evenhand.columns.values import FEW as FEW
from evenhand.columns.values import (
    as_numbers,
    as_pandas,
    as_table,
    refuse_repeated_names,
    stack_rows,
)
from evenhand.columns.values import kind_of as kind_of
from evenhand.columns.values import level as level
from evenhand.columns.values import text_dates as text_dates

__all__ = [
    "CategoryColumn",
    "Column",
    "Condition",
    "EncodedColumn",
    "Evidence",
    "Group",
    "GroupRule",
    "Groups",
    "LeftOut",
    "Partition",
    "Schema",
    "Seen",
    "TableEncoder",
    "UnseenValues",
    "UnseenValuesWarning",
    "as_numbers",
    "as_pandas",
    "as_table",
    "check_groups",
    "check_names",
    "feature_groups",
    "found_schema",
    "group_columns",
    "label",
    "read_typed",
    "refuse_repeated_names",
    "stack_rows",
    "unreported",
    "warn_unseen",
]
