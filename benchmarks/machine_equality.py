"""Runs on other machines, compared with the same runs here: real ssh and Dask, machines as in `machine_lab`.

    python -m benchmarks.machines equal [--place ssh|dask] [--sshd PATH] [--python PATH ...] [--keep] [RUN ...]

The samples and the project of `diverse_project` run here and there. Two runs are equal if all cases have the same
verdicts, scores, reasons, errors, transcripts, output, events in the same order, traces and requests to models, files
that they read, and if `agent-workbench compare` finds no change. Times, random ids and places may differ. Machines
have another locale, time zone, home, clock and, with `--python`, another Python.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import aftermath
from benchmarks.diverse_project import write_project, write_samples
from benchmarks.machine_lab import Lab, NotPossibleError, require
from workbench.event_json import to_json
from workbench.events import (
    AgentActed,
    CallsRecorded,
    CasePlaced,
    CaseRef,
    FilesRead,
    OutputCaptured,
    RunFinished,
    RunStarted,
    SpansRecorded,
)
from workbench.history.journal import read_journal
from workbench.trace.pieces import PieceLostError, Pieces

LONGEST = 400.0
_SHOWN = 100
"""Differences that are printed."""
_VARIES = frozenset(
    {
        *("at", "duration", "duration_seconds", "creation_timestamp", "start", "end", "run_id", "started", "root"),
        *("seconds", "model_duration", "tool_duration", "timestamp", "finished"),
        *("place", "machine", "inputs", "kept", "kept_in", "pieces"),
    }
)
"""Keys whose values differ in any two runs."""
_CACHED = frozenset({"cached", "attempts", "judge_calls", "judge_calls_cached"})
"""Keys that tell which of several cases with the same question asked it."""
_TIMED = "invocation_duration_v1"
_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])"
)
_DIGEST = re.compile(r"[0-9a-f]{20}")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_LIBRARY = re.compile(
    r'  File "[^"\n]*/(?:lib/python3|workbench/agents/)[^"\n]*", line .*\n(?:    .*\n)*'
    r"|  … \d+ calls? inside libraries\n"
)
"""Calls inside libraries, whose lines differ with the version of Python, and of ours."""
_MACHINES = re.compile(r"^on [\w.:]+(?:, [\w.:]+)*: ")
"""The machines that an error about an import names. Its hint is another one there, too."""
_INTERPRETER = re.compile(r"/[\w./-]+/bin/python[\d.]*")
_UNLIKE = ("/path#",)
"""Cases whose answers differ rightly: the agent tells its folder."""
_OUTPUT_COMPARED = 1_000_000
"""Characters. Where the output of a case that prints too much is cut depends on the moment."""


@dataclass(frozen=True)
class Pair:
    """A run to do here and there."""

    write: Callable[[Path], None]
    words: tuple[str, ...] = ()
    targets: tuple[str, ...] = (".",)
    shares: bool = False
    """Whether cases share processes, so that what one prints only once depends on their number."""


PAIRS = {
    "samples": Pair(write_samples),
    "samples-runs": Pair(write_samples, ("--runs", "3")),
    "samples-shared": Pair(write_samples, ("--isolation", "run"), shares=True),
    "samples-frozen": Pair(write_samples, ("--frozen",)),
    "diverse": Pair(write_project),
    "diverse-runs": Pair(write_project, ("--runs", "3")),
    "diverse-shared": Pair(write_project, ("--isolation", "run"), ("studio", "values"), shares=True),
}


def main(words: Sequence[str]) -> int:
    """Compare runs, print each difference, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.machines equal")
    parser.add_argument("names", nargs="*", metavar="RUN", choices=[*PAIRS, []], help=", ".join(PAIRS))
    parser.add_argument("--place", choices=("ssh", "dask"), default="ssh")
    parser.add_argument("--sshd", type=Path, help="OpenSSH's server (default: on the PATH or in /usr/sbin)")
    parser.add_argument("--python", type=Path, action="append", help="Python of a machine, with google-adk and Dask")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the machines, with logs and reports")
    options = parser.parse_args(words)
    found = options.sshd or shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    sshd = Path(found).absolute() if found else None
    pythons = [path.absolute() for path in options.python or [Path(sys.executable)]]
    different = 0
    folder = Path(tempfile.mkdtemp(prefix="machines-", dir="/var/tmp"))  # Machines have a /tmp of their own.
    try:
        require(options.place, sshd, pythons)
        with Lab(folder, options.place, pythons, sshd, is_foreign=True) as lab:
            machines = [lab.start(name).name for name in ("m1", "m2")]
            for name in options.names or PAIRS:
                different += _compare(lab, name, machines)
    except NotPossibleError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if different else 0


def _compare(lab: Lab, name: str, machines: Sequence[str]) -> bool:
    """Do a run here and there, print what differs, and return whether anything does."""
    pair = PAIRS[name]
    root = lab.user / name
    pair.write(root)
    place = ("--on", lab.word(*machines), "--remote-python", str(lab.python), "--insecure-place")
    (here, seconds_here), (there, seconds_there) = (
        _done(lab, root, kind, (*pair.targets, *pair.words, *on))
        for kind, on in (("here", ("--on", "local")), ("there", place))
    )
    output = not pair.shares
    differences = [
        *_differences(here.report(), there.report()),
        *_differences(here.cases(output), there.cases(output)),
    ]
    differences += _differences(here.files(), there.files(), "files")
    differences += _said(lab, root, here, there)
    statuses = Counter(case["status"] for case in there.raw["cases"])
    where = Counter(event.machine for event in there.events if isinstance(event, CasePlaced))
    steps = sum(isinstance(event, AgentActed) for event in there.events)
    print(
        f"{lab.place:4} {name:15} {len(there.raw['cases'])} cases, {steps} steps of agents, {dict(statuses)}, "
        f"on {dict(where)}, {seconds_here:.0f} s here, {seconds_there:.0f} s there: "
        f"{len(differences) or 'no'} differences",
        *(f"\n     {one}" for one in differences[:_SHOWN]),
        *([f"\n     and {len(differences) - _SHOWN} more"] if len(differences) > _SHOWN else []),
        flush=True,
    )
    return bool(differences)


@dataclass(frozen=True)
class Done:
    """A run: its JSON report, and its events."""

    raw: dict[str, Any]
    events: list[Any]
    runs: Path

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return str(self.raw["run_id"])

    def report(self) -> dict[str, Any]:
        """Return the JSON report, with cases by name, as far as it may not differ."""
        cases = {_key(case): _settled(case) for case in self.raw["cases"]}
        rest = {key: value for key, value in self.raw.items() if key != "cases"}
        return {"report": {**cases, "all": _settled(rest)}}

    def cases(self, output: bool) -> dict[str, Any]:
        """Return the events of each case in their order and the contents of its traces and, apart, its output."""
        found: dict[CaseRef, list[Any]] = {}
        for event in self.events:
            if isinstance(case := getattr(event, "case", None), CaseRef) and not isinstance(event, CasePlaced):
                found.setdefault(case, []).append(event)
        return {_key(to_json(events[0])["case"]): self._told(events, output) for events in found.values()}

    def _told(self, events: Sequence[Any], with_output: bool) -> Any:
        pieces = Pieces([event for event in events if isinstance(event, CallsRecorded | SpansRecorded)], self.runs)
        steps: list[Any] = []
        output = {"stdout": "", "stderr": ""}
        scores: list[Any] = []
        for event in events:
            if isinstance(event, OutputCaptured):
                output[event.stream] += event.text
                continue
            told = to_json(event)
            if isinstance(event, SpansRecorded):
                told["spans"] = _with_pieces(json.loads(event.spans), pieces)
            elif isinstance(event, CallsRecorded):
                told["calls"] = _with_pieces(json.loads(event.calls), pieces)
            del told["case"]
            (scores if told["event"] == "MetricScored" else steps).append(told)
        scores.sort(key=lambda score: str(score["result"]["name"]))  # They are computed at the same time.
        printed = {stream: text[:_OUTPUT_COMPARED] for stream, text in output.items() if with_output}
        return _settled({"events": steps, "output": printed, "scores": scores})

    def files(self) -> dict[str, Any]:
        """Return the files that each agent read or wrote."""
        found: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, FilesRead | RunFinished | RunStarted):
                for agent, files in event.sources.items():
                    found.setdefault(agent, {}).update(files)
            if isinstance(event, FilesRead):
                for agent, written in event.written.items():
                    found.setdefault(f"{agent} wrote", []).extend(sorted(written))
        return found


def _key(case: Mapping[str, Any]) -> str:
    return f"{case['agent']}/{case['evalset_file']}/{case['eval_id']}#{case['repeat']}"


def _with_pieces(value: Any, pieces: Pieces) -> Any:
    """Return a value with the contents of pieces in place of their digests, which depend on random ids."""
    if isinstance(value, dict):
        return {key: _with_pieces(one, pieces) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_pieces(one, pieces) for one in value]
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        try:
            return {"piece": pieces.read(value)}
        except PieceLostError as error:
            return {"lost": str(error)}
    return value


def _settled(value: Any) -> Any:
    """Return JSON data without times and places. Random ids become numbers, in the order of their appearance."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"id{len(numbers) + 1}")

    def settle(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("name") == _TIMED:
                return _TIMED
            left_out = _VARIES | _CACHED | ({"hint"} if value.get("kind") == "import_failed" else set())
            return {settle(key): settle(one) for key, one in value.items() if key not in left_out}
        if isinstance(value, list):
            return [settle(one) for one in value]
        if isinstance(value, str):
            told = _INTERPRETER.sub("PYTHON", _LIBRARY.sub("", _MACHINES.sub("", value)))
            return _ADDRESS.sub("0x…", _RANDOM.sub(number, told))
        return repr(value) if isinstance(value, float) else value  # NaN is equal to nothing.

    return settle(value)


def _differences(here: Any, there: Any, path: str = "") -> Iterator[str]:
    """Return each difference between two JSON values."""
    if any(name in path for name in _UNLIKE):
        return
    if isinstance(here, dict) and isinstance(there, dict):
        for key in [*here, *(key for key in there if key not in here)]:
            yield from _differences(here.get(key, "—"), there.get(key, "—"), f"{path} › {key}" if path else str(key))
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for index, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif here != there or type(here) is not type(there):
        yield f"{path}: {_short(here, there)} here, {_short(there, here)} there"


def _short(value: Any, other: Any) -> str:
    """Return the text of a value, from a little before the place where it differs."""
    text, against = ascii(value), ascii(other)
    same = next((at for at, (one, two) in enumerate(zip(text, against, strict=False)) if one != two), 0)
    begin = max(0, same - 60) if len(text) > 200 else 0
    return ("…" if begin else "") + text[begin : begin + 200]


def _done(lab: Lab, root: Path, kind: str, words: Sequence[str]) -> tuple[Done, float]:
    """Run the workbench on the user's machine, and return what came of it, with its seconds."""
    report = root.parent / f"{root.name}-{kind}.json"
    words = ("run", "--plain", "--no-cache", "--fresh", "--timeout", "15", "--json", str(report), *words)
    began = time.monotonic()
    code = _workbench(lab, root, f"{root.name}-{kind}", *words)
    seconds = time.monotonic() - began
    if code not in (0, 1, 3) or not report.exists():
        text = (lab.folder / f"{root.name}-{kind}.log").read_text("utf-8", "replace")
        raise NotPossibleError(f"{kind}, {root.name} ended with {code}:\n{text[-3000:]}")
    raw = json.loads(report.read_text("utf-8"))
    runs = root / ".workbench/runs"
    return Done(raw, list(read_journal(runs / raw["run_id"] / "events.jsonl")), runs), seconds


def _workbench(lab: Lab, root: Path, log: str, *words: str) -> int | None:
    """Run a command of the workbench in the project, and return its exit code, or None if it hung and was killed."""
    path = lab.folder / f"{log}.log"
    path.unlink(missing_ok=True)
    environment = {**aftermath.environment(log), "EQUAL_VALUE": "Wert ☃", "STUDIO_VALUE": f"{root}/studio"}
    process = lab.workbench(*words, environment=environment, log=path, folder=root)
    try:
        return process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _said(lab: Lab, root: Path, here: Done, there: Done) -> Iterator[str]:
    """Return what `compare` says about the two runs, if it is not that they are equal."""
    log = f"{root.name}-said"
    code = _workbench(lab, root, log, "compare", here.run_id, there.run_id, "--json")
    text = (lab.folder / f"{log}.log").read_text("utf-8", "replace")
    try:
        compared = json.loads(text)
    except ValueError:
        yield f"compare ended with {code}: {text[-1000:]}"
        return
    for change in compared["cases"]:
        yield f"compare: {json.dumps(change)[:600]}"
    if code:
        yield f"compare ended with {code}"
