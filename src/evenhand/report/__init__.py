"""Reports: results in words, as a page of HTML and as text."""

from evenhand.report.audit import audit_html, audit_markdown, audit_text
from evenhand.report.certificates import (
    ASSUMED,
    NOT_COVERED,
    ONE_ROW_EACH,
    QUESTIONS,
    WHY,
    caveat,
    certificate_text,
    guarantee,
    plan_text,
    selection_text,
    worth_sentence,
)
from evenhand.report.charts import OUTCOMES_TITLE, PIT_BAND, PIT_TITLE
from evenhand.report.comparison import comparison_html, comparison_text
from evenhand.report.kinds import Measure, NoteKind, note, notes_of, units_of
from evenhand.report.watch import late_sentence, watch_html, watch_text
