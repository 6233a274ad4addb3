"""Tables: files, kinds of columns, values seen in training, and groups of rows.

Error messages are one line with file, column, row, value and remedy. Row numbers count data rows
from 1, without empty lines.
"""

from __future__ import annotations

from evenhand.tables.encoding import TableEncoder as TableEncoder
from evenhand.tables.files import TABLE_ENDINGS as TABLE_ENDINGS
from evenhand.tables.files import Parts as Parts
from evenhand.tables.files import TableWriter as TableWriter
from evenhand.tables.files import check_writable as check_writable
from evenhand.tables.files import open_parts as open_parts
from evenhand.tables.files import unguarded as unguarded
from evenhand.tables.groups import EVERYONE as EVERYONE
from evenhand.tables.groups import OWN_VALUES as OWN_VALUES
from evenhand.tables.groups import Condition as Condition
from evenhand.tables.groups import Group as Group
from evenhand.tables.groups import GroupRule as GroupRule
from evenhand.tables.groups import Groups as Groups
from evenhand.tables.groups import Partition as Partition
from evenhand.tables.groups import Seen as Seen
from evenhand.tables.groups import are_probabilities as are_probabilities
from evenhand.tables.groups import check_groups as check_groups
from evenhand.tables.groups import check_names as check_names
from evenhand.tables.groups import feature_groups as feature_groups
from evenhand.tables.groups import forecast_values as forecast_values
from evenhand.tables.groups import group_columns as group_columns
from evenhand.tables.schema import Column as Column
from evenhand.tables.schema import Schema as Schema
from evenhand.tables.schema import Tally as Tally
from evenhand.tables.schema import UnseenValues as UnseenValues
from evenhand.tables.schema import UnseenValuesWarning as UnseenValuesWarning
from evenhand.tables.schema import cells_of_text as cells_of_text
from evenhand.tables.schema import cells_of_type as cells_of_type
from evenhand.tables.schema import copies_in_words as copies_in_words
from evenhand.tables.schema import found_columns as found_columns
from evenhand.tables.schema import read_typed as read_typed
from evenhand.tables.schema import unreported as unreported
from evenhand.tables.schema import warn_unseen as warn_unseen
from evenhand.tables.values import as_numbers as as_numbers
from evenhand.tables.values import as_pandas as as_pandas
from evenhand.tables.values import as_table as as_table
from evenhand.tables.values import column_of as column_of
from evenhand.tables.values import id_column as id_column
from evenhand.tables.values import is_text as is_text
from evenhand.tables.values import kind_of as kind_of
from evenhand.tables.values import level as level
from evenhand.tables.values import number_column as number_column
from evenhand.tables.values import numbers as numbers
from evenhand.tables.values import of_levels as of_levels
from evenhand.tables.values import parse_numbers as parse_numbers
from evenhand.tables.values import refuse_repeated as refuse_repeated
from evenhand.tables.values import refuse_repeated_names as refuse_repeated_names
from evenhand.tables.values import refuse_row as refuse_row
from evenhand.tables.values import repeated_id as repeated_id
from evenhand.tables.values import row_blocks as row_blocks
from evenhand.tables.values import take_rows as take_rows
