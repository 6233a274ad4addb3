"""Reports: findings of an audit, made once, as a page of HTML and as text."""

from evenhand.report.charts import OUTCOMES_TITLE as OUTCOMES_TITLE
from evenhand.report.charts import PIT_BAND as PIT_BAND
from evenhand.report.charts import PIT_TITLE as PIT_TITLE
from evenhand.report.charts import SIZE_TITLE as SIZE_TITLE
from evenhand.report.comparison import comparison_html as comparison_html
from evenhand.report.comparison import comparison_text as comparison_text
from evenhand.report.comparison import difference_in_words as difference_in_words
from evenhand.report.findings import findings_of as findings_of
from evenhand.report.measures import Measure as Measure
from evenhand.report.measures import Quantity as Quantity
from evenhand.report.measures import log_score_name as log_score_name
from evenhand.report.measures import units_of as units_of
from evenhand.report.notes import Note as Note
from evenhand.report.notes import NoteKind as NoteKind
from evenhand.report.notes import notes_of as notes_of
from evenhand.report.page import audit_html as audit_html
from evenhand.report.records import without_nan as without_nan
from evenhand.report.status import JudgedCondition as JudgedCondition
from evenhand.report.status import Status as Status
from evenhand.report.status import Verdict as Verdict
from evenhand.report.status import status_of as status_of
from evenhand.report.text import audit_brief as audit_brief
from evenhand.report.text import audit_text as audit_text
from evenhand.report.watch_page import watch_html as watch_html
from evenhand.report.watch_page import watch_text as watch_text
from evenhand.report.watched import late_sentence as late_sentence
