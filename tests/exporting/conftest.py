import pytest

from tests.cli.stores import all_statuses
from workbench.store.store import Store


@pytest.fixture
def store() -> Store:
    """Return a finished run with every status."""
    return all_statuses()
