"""What the tests of the render functions share."""

from collections.abc import Callable, Iterable

import pytest

from tests.cli.stores import all_statuses
from workbench.rendering.lines import Line, text_of
from workbench.store import Store

Texts = Callable[[Iterable[Line]], list[str]]


@pytest.fixture
def texts() -> Texts:
    """The lines without styles and without blanks at their ends."""
    return lambda lines: [text_of(line).rstrip() for line in lines]


@pytest.fixture
def store() -> Store:
    """A finished run with every status in it."""
    return all_statuses()
