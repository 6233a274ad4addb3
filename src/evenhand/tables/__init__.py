"""Reading and writing of tables as csv and parquet files, whole or in blocks.

Error messages are one line with file, column, row, value and remedy. Row numbers count data rows
from 1, without empty lines.
"""

from __future__ import annotations

from evenhand.tables.cells import (
    MISSING_WORDS,
    as_mask,
    column_of,
    id_column,
    is_text,
    missing_words,
    number_column,
    parse_numbers,
    parse_text_numbers,
    refuse_repeated,
    refuse_row,
    repeated_id,
    row_blocks,
    take_rows,
    text_array,
)
from evenhand.tables.files import TABLE_ENDINGS, holds_text, read_table
from evenhand.tables.files import open_parquet as open_parquet
from evenhand.tables.files import readable as readable
from evenhand.tables.parts import Parts, open_parts
from evenhand.tables.writing import (
    TableWriter,
    check_writable,
    spreadsheet_safe,
    unguarded,
    write_table,
)
from evenhand.tables.writing import guarded as guarded

__all__ = [
    "MISSING_WORDS",
    "TABLE_ENDINGS",
    "Parts",
    "TableWriter",
    "as_mask",
    "check_writable",
    "column_of",
    "holds_text",
    "id_column",
    "is_text",
    "missing_words",
    "number_column",
    "open_parts",
    "parse_numbers",
    "parse_text_numbers",
    "read_table",
    "refuse_repeated",
    "refuse_row",
    "repeated_id",
    "row_blocks",
    "spreadsheet_safe",
    "take_rows",
    "text_array",
    "unguarded",
    "write_table",
]
