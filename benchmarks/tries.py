"""A try of three variants against the same number of executions in one run, in turn.

    python -m benchmarks.tries [--rounds 5] [--cases 60] [--runs 3]

The agent is a real `LlmAgent` with a scripted model that answers at once, so no waiting hides the cost of the variants:
their copies, an import of the agent for each, and the statistics. CPU seconds are those of all processes together. Both
commands print only their summary, and both store what happens.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import figures
from benchmarks.run_adk import Cost, measure, ours, write_project

GOAL = 1.15
_VARIANTS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        evalset = _project(root, options.cases)
        run = ours(evalset, "--runs", str(_VARIANTS * options.runs), "--fresh", "-q")
        tried = [word if word != "run" else "try" for word in ours(evalset, "--runs", str(options.runs), "-q")]
        commands = {"run": run, "try": [*tried, "--set", "SHOP_MODE=test"]}
        for words in commands.values():  # Neither is measured if it does not work.
            subprocess.run(words, cwd=root, check=True, stdout=subprocess.DEVNULL)
        costs = _in_turn(options.rounds, {name: partial(measure, words, root) for name, words in commands.items()})
    ratios = [tried.cpu / run.cpu for run, tried in zip(costs["run"], costs["try"], strict=True)]
    executions = _VARIANTS * options.cases * options.runs
    print(f"{_VARIANTS} variants × {options.cases} cases × {options.runs} runs = {executions} executions")
    for name, found in costs.items():
        cpu, wall = (statistics.median(values) for values in zip(*((one.cpu, one.wall) for one in found), strict=True))
        print(f"  {name}  {cpu:6.2f} s CPU  {wall:6.2f} s  {cpu / executions * 1000:5.1f} ms CPU each")
    ratio = statistics.median(ratios)
    print(f"  try / run, CPU: {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}), goal {GOAL}")
    figures.record("tries", "CPU of a try to that of a run", ratio, "x", goal=GOAL)


def _project(root: Path, cases: int) -> Path:
    """Write a project whose working tree differs from HEAD, and return its evalset."""
    evalset = write_project(root, cases)
    who = ["-c", "user.name=n", "-c", "user.email=e@x.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "1"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    agent = root / "desk" / "agent.py"
    agent.write_text(f"{agent.read_text()}\n# Another version.\n")
    return evalset


def _in_turn(rounds: int, commands: dict[str, Callable[[], Cost]]) -> dict[str, list[Cost]]:
    """Measure the commands in turn, each first in half of the rounds."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in list(commands)[:: -1 if number % 2 else 1]:
            costs[name].append(commands[name]())
    return costs


if __name__ == "__main__":
    main()
