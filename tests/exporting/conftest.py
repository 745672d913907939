import pytest

from tests.cli.stores import all_statuses
from workbench.store import Store


@pytest.fixture
def store() -> Store:
    """A finished run with every status in it."""
    return all_statuses()
