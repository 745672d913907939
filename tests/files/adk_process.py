import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class Adk:
    """A process that runs google-adk's readers."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.files.adk_oracle"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def ask(self, what: str, text: str = "", **more: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"what": what, "text": text, **more}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate(timeout=60)
