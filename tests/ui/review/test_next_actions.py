"""The rows of the last page."""

from workbench.results.review import last_page
from workbench.ui.actions import keymap
from workbench.ui.review.key_lines import rows_of
from workbench.ui.review.model import Outcome

NAMES = [("refunds.json", str(number)) for number in range(30)]
OUTCOME = Outcome(
    {"skipped": NAMES[:20], "agent bug": NAMES[:9], "errors": NAMES[:1], "flaky": NAMES[:4], "passed": NAMES[:2]}, 7
)


def test_kinds_of_verdicts_are_sorted_by_number_with_skipped_cases_last() -> None:
    rows = rows_of(OUTCOME, keymap().keys)
    assert [(row.number, row.label, row.key) for row in rows] == [
        (9, "agent bug", "y"),
        (4, "flaky", "X"),
        (2, "pass now", ""),
        (1, "error", "F"),
        (20, "skipped", "V"),
    ]


def test_keys_of_the_user_are_shown() -> None:
    rows = rows_of(OUTCOME, keymap({"copy_id": ["Y"]}).keys)
    assert rows[0].key == "Y"


def test_every_row_fits_on_a_small_screen() -> None:
    document = last_page(rows_of(OUTCOME, keymap().keys), OUTCOME.by_cause, 59)
    lines = [line.plain for line in document.lines]
    assert len(document.items) == 5
    assert any("y copy as Markdown" in line for line in lines)
    assert not any("…" in line for line in lines)
    assert any("7 of these verdicts were given by cause (*), unseen." in line for line in lines)
