"""Output of `pytest tests/parity` for vectors of one's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli import projects


def _vector(metric: str, status: str, **others: Any) -> dict[str, Any]:
    turn = {"user_content": {"parts": [{"text": "hi"}]}}
    return {
        "id": f"{metric}-{status}",
        "metric": metric,
        "criterion": 1.0,
        "expected": [turn],
        "actual": [turn],
        "note": "no calls on either side",
        "result": {
            "overall_score": 1.0,
            "overall_status": status,
            "per_invocation": [{"score": 1.0, "status": "PASSED"}],
        },
        **others,
    }


pytestmark = pytest.mark.usefixtures("warm_programs")


def _run(repository: Path, vectors: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    process = projects.start_program(
        [sys.executable, "-m", "pytest", "-p", "pytest_asyncio.plugin", "-p", "xdist", "tests/parity", "-q", *options],
        cwd=repository,
        # The other plugins import a good part of Textual, and have nothing to do here.
        env={
            **os.environ,
            "PARITY_VECTORS": str(vectors),
            "NO_COLOR": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": projects.python_path(),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(options, process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_last_lines_count_the_results(repository: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    vectors = [
        _vector("tool_trajectory_avg_score", "PASSED", quirks=["floating_point_edge"]),
        _vector("tool_trajectory_avg_score", "FAILED"),
        _vector("not_a_metric_yet", "PASSED"),
        _vector("not_a_metric_yet", "FAILED"),
    ]
    (tmp_path / "some.json").write_text(json.dumps(vectors), encoding="utf-8")
    done = _run(repository, tmp_path, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-3:] == [
        "parity not_a_metric_yet is not supported yet (2 vectors)",
        "parity tool_trajectory_avg_score: 1 equal, 0 differ as documented, 1 wrong",
        "parity quirk floating_point_edge: 1 equal, 0 differ as documented, 0 wrong",
    ]
    assert "FAILED, got passed" in done.stdout


def test_folder_without_vectors_fails(repository: Path, tmp_path: Path) -> None:
    done = _run(repository, tmp_path)
    assert done.returncode != 0
    assert f"no parity vectors (*.json) in {tmp_path}" in done.stdout
