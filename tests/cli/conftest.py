from pathlib import Path

import pytest

from tests.cli.projects import Project
from tests.cli.stores import all_statuses
from workbench.store import Store


@pytest.fixture
def store() -> Store:
    """A finished run with every status in it."""
    return all_statuses()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
