"""Shared by tests of inputs: scorers that start fast."""

import pytest


@pytest.fixture(autouse=True)
def _warm(warm_scorers: None) -> None:
    """Let the scorers of runs in this process be forks."""
