"""Reading and writing of tables as csv and parquet files, whole or in blocks.

Error messages are one line with file, column, row, value and remedy. Row numbers count data rows
from 1, without empty lines.
"""

from __future__ import annotations

from evenhand.tables.cells import as_mask as as_mask
from evenhand.tables.cells import column_of as column_of
from evenhand.tables.cells import id_column as id_column
from evenhand.tables.cells import is_text as is_text
from evenhand.tables.cells import missing_words as missing_words
from evenhand.tables.cells import number_column as number_column
from evenhand.tables.cells import parse_numbers as parse_numbers
from evenhand.tables.cells import parse_text_numbers as parse_text_numbers
from evenhand.tables.cells import refuse_repeated as refuse_repeated
from evenhand.tables.cells import refuse_row as refuse_row
from evenhand.tables.cells import repeated_id as repeated_id
from evenhand.tables.cells import row_blocks as row_blocks
from evenhand.tables.cells import take_rows as take_rows
from evenhand.tables.cells import text_array as text_array
from evenhand.tables.files import TABLE_ENDINGS as TABLE_ENDINGS
from evenhand.tables.files import holds_text as holds_text
from evenhand.tables.files import read_table as read_table
from evenhand.tables.parts import Parts as Parts
from evenhand.tables.parts import open_parts as open_parts
from evenhand.tables.writing import TableWriter as TableWriter
from evenhand.tables.writing import check_writable as check_writable
from evenhand.tables.writing import spreadsheet_safe as spreadsheet_safe
from evenhand.tables.writing import unguarded as unguarded
from evenhand.tables.writing import write_table as write_table
