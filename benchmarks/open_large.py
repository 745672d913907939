"""G13: opening a 54 MB evalset of 20 000 cases, google-adk and the workbench in turn.

    python -m benchmarks.open_large [--rounds 3] [--keep FOLDER]

Each measurement is its own process; imports are not timed, peaks are of the whole process. google-adk is run if
it is installed. Goals: ids at least 15 times faster than ADK loads the file, every case checked at least 2.5 times
faster, and a peak of at most 120 MiB over that of opening a small file.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import figures

CASES = 20_000
WORDS = (
    *("where", "is", "my", "parcel", "number", "the", "refund", "of", "order", "please", "late", "café", "status"),
    *("tomorrow", "in", "Kraków", "注文", "and", "thank", "you"),
)
LAYOUTS: dict[str, dict[str, Any]] = {
    "as ADK writes it": {"indent": 2},
    "on one line": {"separators": (",", ":")},
    "with tabs": {"indent": "\t"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep the files in this folder")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, file = options.measure
        print(json.dumps(_measure(what, Path(file))))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        small = place / "small.evalset.json"
        small.write_text(json.dumps({"eval_set_id": "small", "eval_cases": []}), encoding="utf-8")
        content = {"eval_set_id": "large", "eval_cases": list(_cases())}
        for layout, settings in LAYOUTS.items():
            file = place / f"{layout.replace(' ', '_')}.evalset.json"
            with file.open("w", encoding="utf-8") as stream:
                json.dump(content, stream, ensure_ascii=False, **settings)
            _compare(layout, file, small, options.rounds)


def _compare(layout: str, file: Path, small: Path, rounds: int) -> None:
    print(f"{CASES:,} cases, {file.stat().st_size / 1e6:.0f} MB, {layout}")
    found: dict[str, list[dict[str, float]]] = {"adk": [], "ids": [], "check": [], "empty": []}
    for _ in range(rounds):
        for what, runs in found.items():
            result = _in_process(what, small if what == "empty" else file)
            runs += [result] if result else []
    seconds = {what: statistics.median(run["seconds"] for run in runs) for what, runs in found.items() if runs}
    peaks = {what: max(run["peak"] for run in runs) for what, runs in found.items() if runs}
    for what, name in (("adk", "google-adk loads it"), ("ids", "ids listed"), ("check", "listed, every case checked")):
        if what not in seconds:
            print(f"  {name:<28} not installed")
            continue
        against = f"{seconds['adk'] / seconds[what]:5.1f} × faster" if "adk" in seconds and what != "adk" else ""
        over = peaks[what] - peaks["empty"]
        if what == "ids" and "adk" in seconds:
            ratio = seconds["adk"] / seconds[what]
            figures.record("G13", f"ids listed, {layout}", ratio, "x", goal=15, more_is_better=True)
            figures.record("G13", f"peak over an empty folder, {layout}", over, "MiB", goal=120)
        elif what == "check" and "adk" in seconds:
            ratio = seconds["adk"] / seconds[what]
            figures.record("G13", f"all typed, {layout}", ratio, "x", goal=2.5, more_is_better=True)
        print(f"  {name:<28} {seconds[what] * 1000:6.0f} ms  {against:14}  peak {over:4.0f} MiB over a small file's")


def _in_process(what: str, file: Path) -> dict[str, float] | None:
    command = [sys.executable, "-m", "benchmarks.open_large", "--measure", what, str(file.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        if what == "adk" and "ModuleNotFoundError" in done.stderr:
            return None
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _measure(what: str, file: Path) -> dict[str, float]:
    with file.open("rb") as stream:
        while stream.read(1 << 20):  # so that both read it from memory
            pass
    if what == "adk":
        from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

        # The models are built on first use.
        load_eval_set_from_file(str(file.parent / "small.evalset.json"), "small")
        began = time.perf_counter()
        count = len(load_eval_set_from_file(str(file), "large").eval_cases)
    else:
        from workbench.files.evalset import open_evalset

        open_evalset(file.parent / "small.evalset.json")
        began = time.perf_counter()
        document = open_evalset(file)
        if what == "check":
            document.check()
        count = len(document.cases)
    seconds = time.perf_counter() - began
    if what != "empty" and count != CASES:
        raise SystemExit(f"{count} cases instead of {CASES}")
    return {"seconds": seconds, "peak": _peak()}


def _peak() -> float:
    """Return this process's peak memory in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # a child's ru_maxrss begins with what its parent had
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _cases() -> Iterator[dict[str, Any]]:
    chance = random.Random(13)
    for number in range(CASES):
        recorded = number % 2 == 0
        turns = [_turn(chance, number, turn, recorded=recorded) for turn in range(1 if recorded else 2)]
        session = {
            "app_name": "order_desk",
            "user_id": "user",
            "state": {"eval_id": "not a case", "vip": number % 7 == 0},
        }
        yield {"eval_id": f"case_{number:05}", "conversation": turns, "session_input": session}


def _turn(chance: random.Random, number: int, turn: int, *, recorded: bool) -> dict[str, Any]:
    call = {"id": f"adk-{number}-{turn}", "args": {"order_id": f"A-{number}", "amount": 12.5}, "name": "refund"}
    data: dict[str, Any] = {"tool_uses": [call], "intermediate_responses": [["checker", [{"text": "{looks fine}"}]]]}
    if recorded:
        answer = {"id": call["id"], "name": "refund", "response": {"status": "done"}}
        parts: list[dict[str, Any]] = [{"function_call": call}, {"function_response": answer}]
        data = {
            "invocation_events": [
                {"author": "order_desk", "content": {"parts": [part], "role": "model"}} for part in parts
            ]
        }
    return {
        "invocation_id": f"e-{number}-{turn}",
        "user_content": {"parts": [{"text": _text(chance, 25)}], "role": "user"},
        "final_response": {"parts": [{"text": _text(chance, 72)}], "role": "model"},
        "intermediate_data": data,
        "creation_timestamp": 1747345505.5,
    }


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(words))


if __name__ == "__main__":
    main()
