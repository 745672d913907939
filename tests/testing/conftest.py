from pathlib import Path

import pytest

from tests.cli.projects import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(autouse=True)
def _warm(warm_scorers: None, warm_programs: None) -> None:
    """Let the scorers of runs in this process be forks, and runs of pytest too."""
