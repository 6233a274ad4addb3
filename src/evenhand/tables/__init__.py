"""Tables in csv and parquet files: read whole or in blocks, typed columns taken out of them, written.

Complaints are one line: file, column, row, value, what to do. Rows are data rows counted from 1; empty lines are none.
"""

from __future__ import annotations

from evenhand.tables._columns import column_of, id_column, number_column, row_blocks, take_rows
from evenhand.tables._files import TABLE_ENDINGS
from evenhand.tables._parts import Parts, open_parts
from evenhand.tables._reading import read_table
from evenhand.tables._writing import TableWriter, check_writable, write_table

__all__ = [
    "TABLE_ENDINGS",
    "Parts",
    "TableWriter",
    "check_writable",
    "column_of",
    "id_column",
    "number_column",
    "open_parts",
    "read_table",
    "row_blocks",
    "take_rows",
    "write_table",
]
