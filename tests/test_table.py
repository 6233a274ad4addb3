"""Tables of results as text."""

from __future__ import annotations

from evenhand._table import WIDTH, Column, Table, Value, line_width, lines_within, wrapped

COLUMNS = [Column("group"), Column("error", is_number=True), Column("drawn", in_text=False)]


def test_numbers_are_aligned_to_the_right_and_columns_of_pages_left_out() -> None:
    table = Table("Groups", COLUMNS, [["a", "1,200", "x"], ["bcd", Value("7", "5 to 9"), "y"]])
    assert table.text().splitlines() == [
        "group        error",
        "──────────────────",
        "a            1,200",
        "bcd     7 (5 to 9)",
    ]


def test_the_most_rows_are_shown() -> None:
    rows = [[str(i), "1", ""] for i in range(9)]
    assert len(Table("Groups", COLUMNS, rows).text(most=4).splitlines()) == 6


def test_text_from_data_is_neither_markup_nor_control() -> None:
    name = "[red]a[/red] \x1b[2J\u202e\n"
    shown = Table("Groups", [Column(name)], [[name], [Value(name, name)]]).text()
    assert shown.count(r"[red]a[/red] \u001b[2J\u202e\n") == 4
    assert "\x1b" not in shown + wrapped(name)
    assert wrapped("[b] one\nline") == r"[b] one\nline"


def test_lines_have_at_most_their_width() -> None:
    rows = [["word " * 40, Value("x" * 300, "5 to 9"), ""]]
    table = Table("Groups", COLUMNS, rows)
    assert max(map(len, table.text().splitlines())) <= WIDTH
    assert max(map(len, table.text(50).splitlines())) <= 50
    assert max(map(len, wrapped("word " * 90, 40).splitlines())) <= 40
    assert table.text().replace("\n", "").count("x") == 300


def test_words_are_whole_at_any_width_and_narrow_tables_are_printed_row_by_row() -> None:
    titles = ("group", "error (points)", "adjusted", "finding", "80% coverage", "rows")
    columns = [Column(title, is_number=i in (1, 5)) for i, title in enumerate(titles)]
    cells = ("everyone else", "2.5 (0.0 to 5.2)", "<0.0001", "intervals too narrow", "71.0%", "600")
    table = Table("Groups", columns, [cells, cells])
    words = {word for text in (*titles, *cells) for word in text.split()}
    for width in range(40, 131):
        shown = table.text(width)
        assert max(map(len, shown.splitlines())) <= width
        found = set(shown.replace("─", " ").split())
        assert words <= found | {word.removesuffix(":") for word in found}, width
    assert "─" in table.text(60)
    assert table.text(40).splitlines()[:3] == [
        "group: everyone else",
        "  error (points): 2.5 (0.0 to 5.2)",
        "  adjusted: <0.0001",
    ]


def test_the_width_of_text_is_set_for_a_block() -> None:
    assert line_width() == WIDTH
    with lines_within(60):
        assert max(map(len, wrapped("word " * 90).splitlines())) <= 60
    with lines_within(10):
        assert line_width() == 40
    with lines_within(500):
        assert line_width() == WIDTH
    with lines_within(None):
        assert line_width() == WIDTH
