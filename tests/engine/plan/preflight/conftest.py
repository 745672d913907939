"""Fixtures for checks before a run."""

import pytest

from workbench.judge import retiring


@pytest.fixture(autouse=True)
def no_retiring_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model retire. `tests/judge/test_retiring.py` tests those."""
    monkeypatch.setattr(retiring, "RETIRING", {})
