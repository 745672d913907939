"""Shared fixtures of the engine tests: a project to run, and one set of warm child processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.run.project import Project
from workbench.run.processes.children import Children


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".workbench").mkdir()
    return Project(tmp_path)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def children() -> AsyncIterator[Children]:
    """One warm zygote and one scorer for all tests."""
    async with Children() as warm:
        yield warm
