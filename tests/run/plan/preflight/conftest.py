"""Fixtures for checks before a run."""

import pytest

from workbench.judges import kinds as retiring


@pytest.fixture(autouse=True)
def no_retiring_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model retire. `tests/judges/test_retiring.py` tests those."""
    monkeypatch.setattr(retiring, "RETIRING", {})
