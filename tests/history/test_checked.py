"""Checked lines written in pieces."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from workbench.agents.worker.checked import checked_line
from workbench.history.checked import read_checked, write_checked


@given(st.dictionaries(st.text(), st.text()), st.integers(1, 20))
def test_line_written_in_pieces_equals_line_written_at_once(data: dict[str, str], length: int) -> None:
    text = json.dumps(data)
    file = io.BytesIO()
    write_checked(file, (text[start : start + length] for start in range(0, len(text), length)))
    assert file.getvalue() == checked_line(text)
    assert read_checked(file.getvalue()) == data
