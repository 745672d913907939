"""Sources that Python's parser cannot handle are errors, not crashes."""

import time

import pytest

from workbench.agents.workspace.python_source import LARGEST_SOURCE, parse_source


@pytest.mark.parametrize(
    "source",
    [
        b"-" * 100_000 + b"1", b"a" + b".b" * 100_000, b"a+" * 100_000 + b"a", b"a" + b"()" * 50_000,
        b"if a:\n  pass\n" + b"elif a:\n  pass\n" * 20_000, b"1 if a else " * 20_000 + b"1", b"lambda:" * 50_000 + b"1",
    ],
    ids=["minus", "attributes", "sum", "calls", "elif", "else", "lambda"],
)  # fmt: skip
def test_deeply_nested_expression_is_an_error(source: bytes) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_source(source)


def test_large_source_is_not_parsed() -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="at most 512 kB are parsed"):
        parse_source(b"a=1;" * LARGEST_SOURCE)
    assert time.process_time() - began < 1
