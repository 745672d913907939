"""`run --watch` as a process: files are saved, its lines are read."""

import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.projects import BAD, GOOD, WAITS, Project, case, heard
from tests.saves import save
from tests.stored import stored_runs

pytestmark = pytest.mark.usefixtures("warm_programs")

WITHIN = 60.0


class Lines:
    """A running `run --watch` and the lines it has written so far."""

    def __init__(self, project: Project, *words: str) -> None:
        settings = {"XDG_CONFIG_HOME": str(project.root / "settings")}
        self.process = project.start("run", *words, "--watch", stderr=subprocess.STDOUT, environment=settings)
        self._lines: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.decode())

    def close(self) -> None:
        """End the process in any state."""
        self.process.kill()
        self.process.wait()
        self._reader.join(WITHIN)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def until(self, part: str) -> str:
        """Read up to a line with this text."""
        deadline = time.monotonic() + WITHIN
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {part!r} in {self.seen}") from None
            self.seen.append(line)
            if part in line:
                return line

    def round(self) -> list[str]:
        """Read to the end of a run, and return its lines."""
        start = len(self.seen)
        self.until("watching, Ctrl-C ends")
        return self.seen[start:]

    def settled(self) -> None:
        """Wait until only the workbench, its scorer and two warm processes are left.

        One of these has imported the libraries of agents, the other one the agent.
        """
        deadline = time.monotonic() + WITHIN
        while len(pids := self.processes()) > 4 + getattr(self.process, "servers", 0):
            with ExitStack() as opened:
                ends = [descriptor for pid in pids if (descriptor := _end_of(pid, opened)) is not None]
                ended, _, _ = select.select(ends, [], [], max(0.0, deadline - time.monotonic()))
            assert ended or len(ends) < len(pids), f"{len(pids)} processes stay"

    def processes(self) -> list[int]:
        pids = [self.process.pid]
        for pid in pids:
            try:
                text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            except OSError:
                continue
            pids += map(int, text.split())
        return pids


def _end_of(pid: int, opened: ExitStack) -> int | None:
    """Return a descriptor that becomes readable when the process ends, or None if it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    opened.callback(os.close, descriptor)
    return descriptor


@contextmanager
def watching(project: Project, *words: str) -> Iterator[Lines]:
    lines = Lines(project, *(words or (".",)))
    try:
        lines.round()
        yield lines
        lines.process.send_signal(signal.SIGINT)
        assert lines.process.wait(60) == 130
    finally:
        lines.close()


def agent(answer: str) -> str:
    return f"def root_agent(message, session):\n    return {answer!r} + message\n"


def test_save_runs_the_cases_again(project: Project) -> None:
    project.evalset(GOOD, BAD)
    with watching(project) as lines:
        project.write("echo/agent.py", agent("I say "))
        assert "FAIL echo/talk/good" in lines.until("echo/talk/good")
        lines.until("CHANGED echo/talk/good passed -> failed")
        lines.round()
        project.write("README.md", "hello")
        project.write("echo/README.md", "hello")
        project.write("echo/agent.py", agent("You said "))
        text = "".join(lines.round())
        assert "PASS echo/talk/good" in text
        assert "CHANGED echo/talk/good failed -> passed" in text
        assert "saved → verdict" in "".join(lines.seen)
        assert sum("stale" in line for line in lines.seen) == 2, "the papers ran nothing"


def test_only_cases_that_read_a_file_run_after_its_save(project: Project) -> None:
    reading = "from pathlib import Path\n\n\ndef root_agent(message, session):\n"
    reading += "    return (Path(__file__).parent / (message + '.txt')).read_text()\n"
    project.write("echo/agent.py", reading)
    project.write("echo/one.txt", "You said one")
    project.write("echo/two.txt", "You said two")
    project.evalset(case("one", "one"), case("two", "two"))
    with watching(project) as lines:
        project.write("echo/one.txt", "I say nothing")
        text = "".join(lines.round())
        assert "1 of 2 stale" in text
        assert "FAIL echo/talk/one" in text
        assert "echo/talk/two" not in text
        project.write("echo/agent.py", f"{reading}\n")
        assert "2 of 2 stale" in "".join(lines.round())


@pytest.mark.parametrize("words", [["-k", "BA"], ["--last-failed"]])
def test_only_selected_cases_run_after_a_save(project: Project, words: list[str]) -> None:
    project.evalset(GOOD, BAD)
    if "--last-failed" in words:
        project.program("run", ".")
    with watching(project, ".", "-q", *words) as lines:
        assert any("1 failed in" in line for line in lines.seen)
        agent = project.root / "echo/agent.py"
        save(agent, agent.read_text().replace("You said", "You wrote"))
        round_ = lines.round()
        assert any("1 failed in" in line for line in round_)
        assert not any("FAIL" in line or "talk/good" in line for line in (*lines.seen, *round_))


def test_flaky_case_is_reported_as_changed_only_if_its_rate_changes(project: Project) -> None:
    project.evalset(GOOD)
    # Beside the project: what an agent writes and reads in it would be one more change.
    beside = project.root.with_name(f"{project.root.name}.count")
    flaky = f"from pathlib import Path\n\n\ndef root_agent(message, session):\n    place = Path({str(beside)!r} "
    flaky += "+ {0!r})\n"
    flaky += "    count = len(place.read_text()) if place.exists() else 0\n    place.write_text('x' * (count + 1))\n"
    flaky += "    return 'You said ' + message if count % 3 {1} else 'no'\n"
    project.write("echo/agent.py", flaky.format("a", "== 0"))
    with watching(project, ".", "--runs", "3", "--concurrency", "1") as lines:
        project.write("echo/agent.py", flaky.format("b", "!= 0"))
        text = "".join(lines.round())
        assert "2/3 passed" in text
        assert "CHANGED" not in text
        project.write("echo/agent.py", "def root_agent(message, session):\n    return 'You said ' + message\n")
        lines.round()
        project.write("echo/agent.py", "def root_agent(message, session):\n    return 'never'\n")
        text = "".join(lines.round())
        assert [line for line in text.splitlines() if "CHANGED" in line] == [
            "CHANGED echo/talk/good 3/3 passed -> 0/3 passed"
        ]


def test_until_sure_applies_after_each_save(project: Project) -> None:
    project.evalset(GOOD)
    with watching(project, ".", "--until-sure", "0.5", "--runs", "9") as lines:
        assert any("7/7 passed" in line and "sure that at least 50% pass" in line for line in lines.seen)
        project.write("echo/agent.py", agent("I say "))
        text = "".join(lines.round())
        assert "0/7 passed" in text
        assert "sure that under 50% pass" in text
        assert text.count("FAIL echo/talk/good") == 7


def test_saves_of_equal_size_within_a_second_run_the_new_code(project: Project) -> None:
    """Python's byte-code cache knows files by their size and the second."""
    project.write("echo/agent.py", agent("You said "))
    project.evalset(GOOD)
    sources = [agent("You sold "), agent("You said ")]
    assert len({len(source) for source in sources}) == 1
    with watching(project) as lines:
        for source, word in [*zip(sources, ("FAIL", "PASS"), strict=True)] * 3:
            path = project.write("echo/agent.py", source)
            os.utime(path, (1_700_000_000, 1_700_000_000))
            assert lines.until("echo/talk/good tool").startswith(word)


def test_new_threshold_scores_again_without_a_run(project: Project) -> None:
    project.evalset(GOOD, BAD)
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    with watching(project) as lines:
        project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.0}})
        lines.until("2 of 2 stale: comparing stored scores")
        text = "".join(lines.round())
        assert "PASS echo/talk/bad response_match_score=0.0>=0.0" in text


def test_new_reference_is_used_for_scoring(project: Project) -> None:
    project.evalset(GOOD, BAD)
    with watching(project) as lines:
        path = project.root / "echo/talk.evalset.json"
        save(path, path.read_text().replace("Something else entirely", "You said hello"))
        lines.until("1 of 2 stale: scoring the transcripts")
        text = "".join(lines.round())
        assert "PASS echo/talk/bad" in text
        assert "echo/talk/good" not in text


def test_syntax_error_is_shown_and_the_next_save_runs(project: Project) -> None:
    project.evalset(GOOD)
    with watching(project) as lines:
        project.write("echo/agent.py", "def root_agent(message, session):\n    return (\n")
        lines.until("echo/agent.py:2: '(' was never closed")
        project.write("echo/agent.py", agent("You said "))
        assert "PASS" in lines.until("echo/talk/good tool")


def test_new_save_supersedes_running_cases(project: Project) -> None:
    started = project.root / "started"
    os.mkfifo(started)
    says = f"    with open({str(started)!r}, 'w') as pipe:\n        pipe.write('runs')\n"
    slow = f"import time\n\ndef root_agent(message, session):\n{says}    time.sleep(60)\n"
    project.evalset(GOOD)
    with watching(project) as lines:
        project.write("echo/agent.py", slow)
        # Once it runs, it has been imported: the next save cannot be taken for what it imports.
        assert heard(started, lines.process) == "runs"
        project.write("echo/agent.py", agent("You said "))
        assert "PASS" in lines.until("echo/talk/good tool")
        assert [line for line in lines.seen if line.startswith("ERROR")] == []
        assert any(line.startswith("superseded after") for line in lines.seen)
        assert "1 passed" in "".join(lines.round())


def test_changes_of_a_superseded_round_are_reported_with_the_next(project: Project) -> None:
    """Both cases were in error; one save mended both; a second save came before the slower one had ended."""
    fixed = agent("You said ").replace("    return", "    {}\n    return")
    project.write("echo/agent.py", fixed.format("raise ValueError('broken')"))
    project.evalset(GOOD, WAITS)
    with watching(project) as lines:
        project.write("echo/agent.py", "import time\n\n" + fixed.format("message == 'wait' and time.sleep(60)"))
        assert "PASS" in lines.until("echo/talk/good tool")
        project.write("echo/agent.py", fixed.format("pass"))
        changed = sorted(line for line in lines.round() if line.startswith("CHANGED"))
        assert [line.split()[1:3] for line in changed] == [["echo/talk/good", "error"], ["echo/talk/waits", "error"]]


def test_watch_ends_when_its_reader_is_gone(project: Project) -> None:
    project.evalset(GOOD)
    process = project.start("run", ".", "--watch")
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if b"watching, Ctrl-C ends" in line:
                break
        process.stdout.close()
        project.write("echo/agent.py", agent("I say "))
        assert process.wait(WITHIN) == 130
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_watch_refuses_to_write_reports(project: Project) -> None:
    project.evalset(GOOD)
    done = project.run("run", ".", "--watch", "--json", "report.json")
    assert done.returncode == 2
    assert "--watch cannot write a report" in done.stderr


def test_many_saves_leak_no_processes_descriptors_memory_or_runs(project: Project) -> None:
    """No process, no descriptor, hardly any memory, and on disk only as many runs as the settings allow."""
    project.evalset(GOOD)
    project.write("settings/agent-workbench/config.toml", "[history]\nruns = 20\n")
    with watching(project) as lines:

        def save(number: int) -> None:
            project.write("echo/agent.py", agent("You said ") + f"# {number}\n")
            lines.until("echo/talk/good tool")
            lines.round()

        def least(numbers: range) -> tuple[int, int]:
            """Return the smallest of a few readings, because files are open for moments."""
            seen = []
            for number in numbers:
                save(number)
                lines.settled()
                seen.append(_weight(lines))
            descriptors, memory = zip(*seen, strict=True)
            return min(descriptors), min(memory)

        least(range(15))
        before = least(range(15, 20))
        for number in range(20, 55):
            save(number)
        after = least(range(55, 60))
    assert after[0] <= before[0], "descriptors"
    assert after[1] < before[1] + 6 * 1024, "KiB of memory"
    assert len(stored_runs(project.root / ".workbench")) <= 21, "the newest twenty, and one more is borne"


def _weight(lines: Lines) -> tuple[int, int]:
    folder = Path(f"/proc/{lines.process.pid}/fd")
    opened = []
    for descriptor in folder.iterdir():
        with suppress(FileNotFoundError):
            opened.append(str(descriptor.readlink()))
    # A few connections to the database are open: one for changes, and some that wait for the next question.
    kept = [name for name in opened if "/.workbench/" in name]
    assert len(kept) <= 3 * 4, kept
    descriptors = len(opened) - len(kept)
    status = Path(f"/proc/{lines.process.pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return descriptors, memory
