"""Below the rows: the value under the cursor, and the field in its place while it is edited."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from workbench.authoring.case_rows import CaseRow
from workbench.authoring.evalset_file import RejectedError
from workbench.metrics.registry import rubric_types
from workbench.text import one_line, plain
from workbench.ui.editing.drafts import place_in_words
from workbench.ui.editing.field import ValueField
from workbench.ui.editing.values import as_json, json_head, place_of

_SHOWN = 4_000
"""Characters of a value that are shown without going into it."""
_PERSONAS = "EXPERT, NOVICE or EVALUATOR; or one of your own as JSON, beginning with {"


class ValuePane(Vertical):
    """Shows a row's value, or holds the field in which it is typed."""

    def __init__(self, field: ValueField) -> None:
        super().__init__(classes="value")
        self.field = field
        self._preview = Static("", classes="preview", markup=False)

    def compose(self) -> ComposeResult:
        yield self._preview
        yield self.field

    @property
    def typing(self) -> bool:
        """Whether a value is being typed."""
        return bool(self.field.display)

    def open(self, row: CaseRow) -> str:
        """Puts the field in place of the value; what is to be known for typing, "" for nothing."""
        self.field.take(row)
        self.border_title = Content(place_in_words(row))
        self._preview.display = False
        if row.form != "json" and as_json(row):
            return "as JSON: it has characters that a field cannot show"
        return "as JSON" if as_json(row) else _hint(row)

    def close(self) -> None:
        """Shows the value again."""
        self.border_title = None
        self._preview.display = True

    def show(self, row: CaseRow | None) -> None:
        """Shows the value of another row."""
        text = ""
        if row is not None and row.form == "heading":
            text = "d duplicates the turn, D deletes it, < and > move it, + adds to it"
        elif row is not None and (row.missing or row.value is None):
            text = "not there: enter adds it"
        elif row is not None:
            text = row.value if isinstance(row.value, str) else json_head(row.value, _SHOWN + 1, indent=2)
        self._preview.update(Content(plain(text, limit=_SHOWN)))

    def point_at(self, line: int, column: int, message: str) -> str:
        """Puts the cursor on a fault in the field; what is to be said about it."""
        self.field.point_at(line, column)
        return f"line {line}, column {column}: {one_line(message)}"

    def reject(self, error: RejectedError) -> str:
        """Puts the cursor on what ADK would not read, if it is in the field; what is to be said about it."""
        breach, row = error.breaches[0], self.field.row
        if not self.typing or row is None:
            return f"not saved: {one_line(str(error))}"
        sentence = f"{breach.message}. {breach.hint}".rstrip(". ")
        inside = breach.location[: len(row.location)] == row.location and as_json(row)
        if inside and (place := place_of(self.field.text, breach.location[len(row.location) :])):
            return self.point_at(*place, sentence)
        return one_line(sentence)


def _hint(row: CaseRow) -> str:
    """Return what a value may be if it is one of a few, "" otherwise."""
    name = row.name.strip()
    if name == "type":
        return f"a criterion reads {', '.join(dict.fromkeys(rubric_types().values()))}; others are ignored"
    return _PERSONAS if name == "persona" else ""
