"""Columns of tables: kinds, values seen in training, and groups of rows defined by columns."""

from __future__ import annotations

from evenhand.columns.copies import copies_in_words as copies_in_words
from evenhand.columns.encoding import CategoryColumn as CategoryColumn
from evenhand.columns.encoding import TableEncoder as TableEncoder
from evenhand.columns.given_groups import are_probabilities as are_probabilities
from evenhand.columns.given_groups import check_groups as check_groups
from evenhand.columns.given_groups import check_names as check_names
from evenhand.columns.given_groups import feature_groups as feature_groups
from evenhand.columns.given_groups import group_columns as group_columns
from evenhand.columns.group_rules import GroupRule as GroupRule
from evenhand.columns.groups import EVERYONE as EVERYONE
from evenhand.columns.groups import Condition as Condition
from evenhand.columns.groups import Group as Group
from evenhand.columns.groups import Groups as Groups
from evenhand.columns.groups import label as label
from evenhand.columns.partition import Partition as Partition
from evenhand.columns.partition import Seen as Seen
from evenhand.columns.schema import Column as Column
from evenhand.columns.schema import Evidence as Evidence
from evenhand.columns.schema import Schema as Schema
from evenhand.columns.schema import found_schema as found_schema
from evenhand.columns.schema import read_typed as read_typed
from evenhand.columns.unseen import Tally as Tally
from evenhand.columns.unseen import UnseenValues as UnseenValues
from evenhand.columns.unseen import UnseenValuesWarning as UnseenValuesWarning
from evenhand.columns.unseen import unreported as unreported
from evenhand.columns.unseen import warn_unseen as warn_unseen
from evenhand.columns.values import as_numbers as as_numbers
from evenhand.columns.values import as_pandas as as_pandas
from evenhand.columns.values import as_table as as_table
from evenhand.columns.values import kind_of as kind_of
from evenhand.columns.values import level as level
from evenhand.columns.values import refuse_repeated_names as refuse_repeated_names
from evenhand.columns.values import text_dates as text_dates
