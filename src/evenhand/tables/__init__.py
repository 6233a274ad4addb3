"""Tables: files, kinds of columns, values seen in training, and groups of rows.

Error messages are one line with file, column, row, value and remedy. Row numbers count data rows
from 1, without empty lines.
"""

from evenhand.tables.encoding import TableEncoder
from evenhand.tables.files import (
    TABLE_ENDINGS,
    Parts,
    TableWriter,
    check_writable,
    guarded,
    open_parts,
    unguarded,
)
from evenhand.tables.groups import (
    EVERYONE,
    LOOKS_LIKE_COMPARISON,
    OWN_VALUES,
    Condition,
    Group,
    GroupRule,
    Groups,
    Partition,
    Seen,
    are_probabilities,
    check_groups,
    check_names,
    feature_groups,
    forecast_values,
    group_columns,
    refuse_other_index,
)
from evenhand.tables.schema import (
    Column,
    Schema,
    Tally,
    UnseenValues,
    UnseenValuesWarning,
    cells_of_text,
    cells_of_type,
    copies_in_words,
    found_columns,
    read_typed,
    unreported,
    warn_unseen,
)
from evenhand.tables.values import (
    ORDERED,
    as_numbers,
    as_pandas,
    as_table,
    column_kind,
    column_of,
    dates,
    id_column,
    is_text,
    level,
    moments,
    number_column,
    numbers,
    of_levels,
    parse_numbers,
    refuse_repeated,
    refuse_repeated_names,
    refuse_row,
    repeated_id,
    row_blocks,
    take_rows,
)
