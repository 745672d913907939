"""Help, version and usage errors against `adk eval --help`, in turn (goal G2): `python -m benchmarks.start`.

Median CPU milliseconds of whole processes with warm byte-code, and the ratio to ADK's. `run no-such-file` is no plain
usage error: a word that is not a file may be an evalset's id, so the project is searched first.
"""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures

_ROUNDS = 9
_OURS = (
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["run", "--no-such-option"],
    ["run", "no-such-file"],
    ["score", "no-such-run"],
    ["compare", "no-such-run"],
    ["check", "no-such-file"],
)


def _milliseconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    adk = Path(sys.executable).with_name("adk")
    commands = {" ".join(["agent-workbench", *words]): [sys.executable, "-m", "workbench", *words] for words in _OURS}
    if adk.exists():
        commands["adk eval --help"] = [str(adk), "eval", "--help"]
    for command in commands.values():
        _milliseconds(command)
    rounds = [{name: _milliseconds(command) for name, command in commands.items()} for _ in range(_ROUNDS)]
    medians = {name: statistics.median(one[name] for one in rounds) for name in commands}
    peer = medians.get("adk eval --help")
    print("G2  CPU of a start (goal: at most 1.0 × adk eval --help)")
    for name, value in medians.items():
        print(f"    {name:<40} {value:7.0f} ms" + (f"   {value / peer:5.2f} ×" if peer else ""))
        if peer and name != "adk eval --help":
            figures.record("G2", f"{name}, CPU to adk eval --help", value / peer, "x", goal=1.0)


if __name__ == "__main__":
    main()
