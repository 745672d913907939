"""Files that are named like evalsets but hold something else."""

import json
from pathlib import Path

import pytest

from workbench.files.evalset import open_evalset

FOREIGN = {
    "yaml": "name: x\ntests:\n  - a: 1\n  - b: [1,2\nfoo: bar\n",
    "html": "<html><body>{}</body></html>",
    "markdown": "# Title\n\nAn `evalset` holds {cases}.\n",
    "python": '"""Doc."""\nimport os\nx = {"a": [1]}\n'[3:],
    "package.json": json.dumps({"name": "x", "version": "1", "scripts": {"a": "b"}, "files": list(range(40))}),
    "promptfoo": json.dumps({"description": "x", "prompts": ["a"], "tests": [{"vars": {}}] * 40}),
    "broken package.json": '{"name": "x", "scripts": {"a": "b",}, "files": [1, 2',
    "cases of another tool": json.dumps({"eval_cases": [{"input": "a", "expected": "b"}] * 40}),
    "named records": json.dumps([{"name": "x", "data": [{"question": "a", "answer": "b"}] * 40}]),
    "a list of packages": json.dumps([{"name": "x", "version": "1"}] * 40),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_file_in_an_unknown_format_has_one_fault(content: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.test.json"
    file.write_text(content)
    (fault,) = open_evalset(file).check()
    assert fault.severity == "error"
    assert fault.hint


@pytest.mark.parametrize(
    "content",
    [
        '// cases\n{"eval_set_id": "x", "eval_cases": [}',
        '{"evalSetId": "x", "cases": [], "foo": 1}',
        '{"eval_cases": [{"evalid": "a", "conversation": []}, {"x": 1}]}',
        '[{"name": "x", "dat": [{"query": "a", "reference": "b"}]}]',
    ],
)
def test_near_miss_of_an_evalset_gets_exact_faults(content: str, tmp_path: Path) -> None:
    file = tmp_path / "near.evalset.json"
    file.write_text(content)
    messages = [fault.message for fault in open_evalset(file).check()]
    assert messages
    assert not any("no ADK format" in message or "not JSON" in message for message in messages)
