"""Damaged files beside a good one: through `check`, `migrate` and `run`.

    python -m benchmarks.mutated_files [--count 10000] [--seed 1] [--batch 100] [--kinds KIND,…] [--log FILE]

The files of the sample agents are damaged by chance (`benchmarks.mutations`): evalsets of all formats, criteria
configs, agents, `.env`, `root_agent.yaml`. Each batch lies in one project, beside a good agent with a good evalset.
Each file is opened by `check FILE` and `migrate --dry-run FILE`, with its CPU time. Then `check` and `run` get the
whole project. It is checked that nothing ends with a traceback, that no file takes over two seconds of CPU, and that
the good evalset runs and passes. Some files become links, pipes or devices, in the project and in the state folder of
its run. Then each command must end, and leave a file outside of the project as it is. Ends with exit code 1 otherwise.
The log has a line for each file and state folder. Files that failed are kept in `mutated_files` in the folder for
temporary files.
"""

import argparse
import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.mutations import mutated

MOST_SECONDS = 2.0
_GIVE_UP = 20.0
_SAMPLES = Path(__file__).parent.parent / "sample_agents"
_GOOD = _SAMPLES / "wrapped_bot"
_YAML = b"name: bot\nmodel: gemini-2.5-flash\ninstruction: Answer.\ntools:\n  - name: bot.tools.find\n"
_ENV = b"GOOGLE_API_KEY=abc\nexport NAME=\"a ${GOOGLE_API_KEY} b\"\n# a comment\nOTHER='x'\n"


_KINDS = {"evalset": 65, "config": 17, "agent": 8, "env": 4, "yaml": 1, "special": 5}
"""Kinds of files, and how many of a hundred are of that kind. Special ones are no regular files."""
_SPECIAL = {
    "link to zeros": "/dev/zero",
    "link to a terminal": "/dev/tty",
    "link to a folder": "..",
    "link to itself": "",
    "dangling link": "nowhere/gone",
    "pipe": None,
}
"""What takes the place of a file: the target of a link, "" for its own name, or None."""
_STATE_FILES = (
    *("id", "salt", "owners.json", "last_owners.json", "undo.jsonl", "baseline", "screen.json", "tidying"),
    *("runs/index.jsonl", "cache/digests.json", "cache/machines.json", "runs", "cache", "objects"),
)
_COMMANDS = (
    *("check .", "status .", "history .", "history pin last", "compare last last", "export last --format json"),
    *("freeze last --dry-run", "score last", "run . --case weekend", "history . --keep 1", "history delete last"),
)
_STATES = 3
"""Damaged state folders for each batch."""
_LONGEST_COMMAND = 120.0


@dataclass
class Figures:
    """The observations: CPU seconds by file and command, and faults."""

    seconds: list[tuple[float, str]] = field(default_factory=list)
    whole: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    files: int = 0
    states: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.mutated_files")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--kinds", default=",".join(_KINDS), help="which kinds of files, by default all")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--each", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.each is not None:
        return _each(options.each)
    figures = Figures()
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(options.log.open("w", encoding="utf-8")) if options.log else None
        for number in range((options.count + options.batch - 1) // options.batch):
            size = min(options.batch, options.count - figures.files)
            before = len(figures.faults)
            for line in _batch(random.Random(f"{options.seed}/{number}"), size, options.kinds.split(","), figures):
                if log is not None:
                    print(json.dumps({"batch": number, **line}), file=log, flush=True)
            for fault in figures.faults[before:]:
                print(f"batch {number}: {fault}", flush=True)
    return _sum_up(figures)


def _sum_up(figures: Figures) -> int:
    seconds = sorted(figures.seconds, reverse=True)
    slow = [(took, name) for took, name in seconds if took > MOST_SECONDS]
    worst = ", ".join(f"{took:.2f} s {name}" for took, name in seconds[:3])
    print(f"{figures.files:,} mutated files, {len(figures.faults)} faults, {len(slow)} over {MOST_SECONDS} s of CPU")
    print(f"median {seconds[len(seconds) // 2][0]:.3f} s of CPU for check and migrate; the slowest: {worst}")
    whole = ", ".join(f"{name} {took / figures.files:.3f} s" for name, took in figures.whole.items())
    print(f"CPU of whole projects, per file: {whole}")
    print(f"{figures.states:,} state folders with links, pipes and devices, {len(_COMMANDS)} commands on each")
    return 1 if slow or figures.faults else 0


def _batch(chance: random.Random, size: int, kinds: list[str], figures: Figures) -> Iterator[dict[str, Any]]:
    """Make a project, try it, and yield a line for each of its files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        shutil.copytree(_GOOD, root / "bot", ignore=shutil.ignore_patterns("__pycache__", ".workbench"))
        (root / ".git").mkdir()
        made = {str(file): how for file, how in (_make(root, number, kinds, chance) for number in range(size))}
        figures.files += size
        command = [sys.executable, "-m", "benchmarks.mutated_files", "--each", str(root)]
        asked = "\n".join(made)
        lines = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, errors="replace")
        told = [json.loads(line) for line in lines.stdout.splitlines() if line.startswith("{")]
        if lines.returncode or len(told) < size:
            last = list(made)[len(told)] if len(told) < size else ""
            figures.faults.append(f"the process ended with {lines.returncode} at {last}: {lines.stderr[-500:]}")
            _keep(Path(last), figures)
        for line in told:
            line["how"] = made[line["file"]]
            figures.seconds.append((line["seconds"], f"{Path(line['file']).name} {line['how']}"))
            if line["trouble"] or line["seconds"] > MOST_SECONDS:
                figures.faults.append(f"{line['file']} ({line['how']}): {line['seconds']:.2f} s {line['trouble']}")
                _keep(Path(line["file"]), figures)
            yield line
        _whole(root, figures)
        for number in range(_STATES):
            yield _state(root, number, chance, figures)


def _keep(file: Path, figures: Figures) -> None:
    kept = Path(tempfile.gettempdir(), "mutated_files")
    kept.mkdir(exist_ok=True)
    with contextlib.suppress(OSError):
        shutil.copy(file, kept / f"{len(figures.faults)}-{file.parent.name}-{file.name}")


def _make(root: Path, number: int, kinds: list[str], chance: random.Random) -> tuple[Path, str]:
    """Make one damaged file, in its own folder with what it needs, and say how it was damaged."""
    what = chance.choices(kinds, [_KINDS[kind] for kind in kinds])[0]
    folder = root / "bot" / f"{what}{number}"
    if what in ("agent", "env", "yaml"):
        folder = root / f"{what}{number}"
        shutil.copytree(_GOOD, folder, ignore=shutil.ignore_patterns("__pycache__", ".workbench"))
    else:
        folder.mkdir()
    if what in ("evalset", "special"):
        source = chance.choice(sorted([*_SAMPLES.rglob("*.evalset.json"), *_SAMPLES.rglob("*.test.json")]))
        file, content, kind = folder / source.name, source.read_bytes(), "json"
    elif what == "config":
        source = chance.choice(sorted(_SAMPLES.rglob("test_config.json")))
        shutil.copy(_GOOD / "hours.test.json", folder)
        file, content, kind = folder / "test_config.json", source.read_bytes(), "json"
    elif what == "agent":
        file, content, kind = folder / "agent.py", (_GOOD / "agent.py").read_bytes(), "python"
    elif what == "env":
        file, content, kind = folder / ".env", _ENV, "text"
    else:
        for name in ("agent.py", "__init__.py"):
            (folder / name).unlink()
        file, content, kind = folder / "root_agent.yaml", _YAML, "text"
    if what == "special":
        return file, _make_special(file, root.parent / "outside", chance)
    how, content = mutated(content, kind, chance)
    file.write_bytes(content)
    return file, how


def _make_special(path: Path, outside: Path, chance: random.Random) -> str:
    """Put something else in the place of a file or folder, and say what."""
    how = chance.choice([*_SPECIAL, "link out"])
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    target = _SPECIAL.get(how, str(outside))
    if target is None:
        os.mkfifo(path)
    else:
        path.symlink_to(target or path.name)
    return how


def _state(root: Path, number: int, chance: random.Random, figures: Figures) -> dict[str, Any]:
    """Put links, pipes and devices into a copy of the state folder, and try each command with it."""
    state = root.parent / f"state{number}"
    shutil.copytree(root.parent / "state", state)
    outside = root.parent / "outside"
    outside.write_text("mine")
    files = [str(path.relative_to(state)) for path in sorted(state.rglob("*")) if path.is_file()]
    changed = dict.fromkeys(chance.sample(sorted({*files, *_STATE_FILES}), 4), "")
    for name in changed:
        with contextlib.suppress(OSError):  # Below another one.
            changed[name] = _make_special(state / name, outside, chance)
    for words in _COMMANDS:
        command = [sys.executable, "-m", "workbench", *words.split(), "--state-dir", str(state)]
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "GOOGLE_API_KEY": "", "NO_GCE_CHECK": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=root / "bot",
                env=environment,
                capture_output=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=_LONGEST_COMMAND,
            )
        except subprocess.TimeoutExpired:
            figures.faults.append(f"{words} did not end: {changed}")
            continue
        if b"Traceback" in done.stderr:  # Exports hold those of agents.
            figures.faults.append(f"{words}: {changed}: {done.stderr.decode('utf-8', 'replace')[-1500:]}")
    if outside.read_text() != "mine":
        figures.faults.append(f"a file outside was changed: {changed}")
    figures.states += 1
    return {"state": changed}


def _whole(root: Path, figures: Figures) -> None:
    """Check and run the whole project, as a user would."""
    report = root.parent / "report.json"
    run = ["run", ".", "--plain", "--json", str(report), "--timeout", "20", "--state-dir", str(root.parent / "state")]
    for words in (["check", "."], run):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "workbench", *words]
        path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "GOOGLE_API_KEY": "", "NO_GCE_CHECK": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=root,
                env=environment,
                capture_output=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=900,
            )
        except subprocess.TimeoutExpired:
            figures.faults.append(f"{words[0]} did not end")
            continue
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        figures.whole[words[0]] = figures.whole.get(words[0], 0.0) + took
        if b"fault of the workbench" in done.stderr or (b"workbench/" in done.stderr and b"Traceback" in done.stderr):
            figures.faults.append(f"{words[0]}: {done.stderr.decode('utf-8', 'replace')[-1500:]}")
    with contextlib.suppress(OSError, ValueError):
        cases = json.loads(report.read_bytes()).get("cases", [])
        good = [case for case in cases if case["evalset_file"] == "bot/hours.test.json"]
        if good and all(case["status"] == "passed" for case in good):
            return
    figures.faults.append(f"the good evalset did not run: {done.stderr.decode('utf-8', 'replace')[-500:]}")


class _TooLongError(Exception):
    pass


def _each(root: Path) -> int:
    """Open each file that standard input names with `check` and `migrate`, and print a line of JSON for it."""
    os.chdir(root)

    def stop(_number: int, _frame: object) -> None:
        raise _TooLongError

    signal.signal(signal.SIGPROF, stop)
    for name in sys.stdin.read().splitlines():
        file = Path(name)
        target = file if file.parent.parent.name == "bot" and file.name != "test_config.json" else file.parent
        began, trouble = time.process_time(), ""
        signal.setitimer(signal.ITIMER_PROF, _GIVE_UP)
        try:
            for words in (["check", str(target)], ["migrate", "--dry-run", name]):
                trouble = trouble or _carried_out(words)
        except _TooLongError:
            trouble = f"more than {_GIVE_UP} s of CPU"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - began
        print(json.dumps({"file": name, "seconds": round(seconds, 4), "trouble": trouble}), flush=True)
    return 0


def _carried_out(words: list[str]) -> str:
    """Run a command in this process. Return the end of its traceback, or ""."""
    from workbench.__main__ import execute

    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            execute(words)
        except (KeyboardInterrupt, _TooLongError):
            raise
        except SystemExit:
            pass
        except BaseException as error:
            import traceback

            return "".join(traceback.format_exception(error))[-1500:]
    text = said.buffer.getvalue().decode("utf-8", "replace")
    return text[-1500:] if "Traceback" in text else ""


if __name__ == "__main__":
    sys.exit(main())
