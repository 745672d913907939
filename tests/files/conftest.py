"""Files made from a line of text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workbench.files.evalset import EvalsetDocument, open_evalset

Open = Callable[..., EvalsetDocument]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Open a file with this text or these bytes."""

    def open_text(text: str | bytes, name: str = "orders.evalset.json", **options: Any) -> EvalsetDocument:
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        return open_evalset(path, **options)

    return open_text


@pytest.fixture
def with_case(opened: Open) -> Open:
    """Open a file with this text as its only case, on line 3."""

    def open_case(case: str) -> EvalsetDocument:
        return opened(f'{{"eval_set_id": "orders",\n"eval_cases": [\n{case}\n]}}')

    return open_case
