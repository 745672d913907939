"""What the tests of the render functions share."""

from collections.abc import Callable, Iterable

import pytest

from workbench.ui.render.lines import Line, text_of

Texts = Callable[[Iterable[Line]], list[str]]


@pytest.fixture
def texts() -> Texts:
    """The lines without styles and without blanks at their ends."""
    return lambda lines: [text_of(line).rstrip() for line in lines]
