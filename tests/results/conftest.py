"""Fixtures for the tests of rendering."""

from collections.abc import Callable, Iterable

import pytest

from tests.cli.stores import all_statuses
from workbench.results.lines import Line
from workbench.store.store import Store

Texts = Callable[[Iterable[Line]], list[str]]


@pytest.fixture
def texts() -> Texts:
    """Return the lines without styles and trailing blanks."""
    return lambda lines: [line.plain.rstrip() for line in lines]


@pytest.fixture
def store() -> Store:
    """Return a finished run with every status."""
    return all_statuses()
