"""The command `history`: list stored runs, delete them, and pin one as the baseline."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, warn, write_line
from workbench.text.counting import counted_status, few
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workbench.store.history.summary import ListedRun

_TAKES = {"delete": "one run or more", "pin": "one run", "unpin": "no run"}
_DESCRIPTION = """List stored runs, newest first, including those of `adk eval`, `adk web` and agents-cli.

\b
[PATH]         the project: a folder or a file in it  [default: this folder]
delete RUN...  delete runs
pin RUN        make a run the baseline for `compare`
unpin          remove the baseline
RUN is an ID, the start of one, `last` or `baseline`. If a folder is named delete, pin or unpin,
write ./delete
"""


@common.command("history", _DESCRIPTION, "List or delete stored runs, and pin a baseline.")
@click.argument("words", metavar="[PATH | delete RUN... | pin RUN | unpin]", nargs=-1)
@common.AS_JSON
@click.option("--limit", type=click.IntRange(0), metavar="N", help="List only the newest N runs.")
@click.option(
    "--keep", type=click.IntRange(0), metavar="N", help="Delete all but the newest N runs. The baseline stays."
)
@common.STATE_DIR
def history_command(
    words: tuple[str, ...], as_json: bool, limit: int | None, keep: int | None, state_dir: Path | None
) -> int:
    """List, delete or pin runs, and return the exit code. With `as_json`, list the runs that are left, too."""
    out = sys.stderr if as_json else sys.stdout
    done = lists = True
    try:
        if words and words[0] in _TAKES:
            if keep is not None:
                raise Refused(f"--keep cannot be combined with {words[0]}")
            done = _act(words[0], words[1:], state_dir, out)
            words, lists = (), as_json
        elif keep is not None:
            from workbench.store.history.retention import deletable_runs

            state = common.project_state(_root(words), state_dir)
            done, lists = _delete(state, deletable_runs(state, keep), out), as_json
        if as_json and not done:
            raise Refused("not every run was deleted", hint="The others are still being written, or deleting failed")
        if lists:
            _list(words, as_json, limit, state_dir)
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror or error}") from None
    return 2 if has_failed() or not done else 0


def _act(action: str, words: tuple[str, ...], state_dir: Path | None, out: TextIO) -> bool:
    """Delete, pin or unpin, and say so on `out`. Return whether it succeeded."""
    from workbench.files.project_root import find_root
    from workbench.store.database.database import state_of
    from workbench.store.history.run_names import find_run, states_of

    wanted = {"delete": 1, "pin": 1, "unpin": 0}[action]
    if len(words) < wanted or (action != "delete" and len(words) > wanted):
        raise Refused(f"`history {action}` takes {_TAKES[action]}", try_help="agent-workbench history")
    root = find_root(Path.cwd())
    state = common.project_state(root, state_dir)
    # Resolve all of them before the first is deleted.
    runs = list(dict.fromkeys(find_run(word, state) for word in words))
    _say_where({state_of(run) for run in runs} - {state}, state)
    from workbench.store.history.retention import pin, unpin

    if action == "pin":
        pin(state_of(runs[0]), runs[0].name)
        write_line(out, f"{one_line(runs[0].name)} is the baseline")
    elif action == "unpin":
        for one in states_of(state):
            unpin(one)
        write_line(out, "no run is the baseline")
    else:
        by_state: dict[Path, list[str]] = {state: []} if not runs else {}
        for run in runs:
            by_state.setdefault(state_of(run), []).append(run.name)
        done = [_delete(one, ids, out) for one, ids in by_state.items()]
        return all(done)
    return True


def _say_where(states: "Iterable[Path]", own: Path) -> None:
    """Write a line for each state folder below the project's own whose runs are used, too."""
    for state in sorted(states):
        write_line(sys.stderr, one_line(f"also using the runs in {_kept_in(state, own)}"))


def _delete(state: Path, ids: list[str], out: TextIO) -> bool:
    """Delete runs, and name them on `out`. Return whether all of them were deleted."""
    from workbench.store.history.retention import delete_runs

    gone = delete_runs(state, ids)
    for run_id in ids:
        told = "deleted {}" if run_id in gone else "{} was not deleted: it is still being written, or deleting failed"
        write_line(out if run_id in gone else sys.stderr, told.format(one_line(run_id)))
    if not ids:
        write_line(sys.stderr, "nothing was deleted")
    return len(gone) == len(ids)


def _root(words: tuple[str, ...]) -> Path:
    from workbench.files.project_root import find_root

    paths = [common.FILE.convert(word, None, None) for word in words]
    return find_root(common.one_path(paths, "agent-workbench history"))


def _list(words: tuple[str, ...], as_json: bool, limit: int | None, state_dir: Path | None) -> None:
    from workbench.agents.discovery import discover_for
    from workbench.store.history.other_programs import foreign_runs
    from workbench.store.history.run_list import list_runs
    from workbench.store.history.run_names import ages, baseline, no_run_message, not_shown, states_of

    root = _root(words)
    state = common.project_state(root, state_dir)
    lists = {one: list_runs(one) for one in states_of(state)}
    _say_where((one for one in lists if one != state and lists[one].runs), state)
    kept = [(run, _kept_in(one, state)) for one, found in lists.items() for run in found.runs]
    discovered, _ = discover_for([root], root)
    folders = [agent.folder for agent in discovered.agents]
    entries, more = foreign_runs(folders, root, {run.run_id for run, _ in kept})
    trouble = [*(line for found in lists.values() for line in found.trouble), *more]
    age = ages()
    runs = [*kept, *((run, "") for run in entries)]
    runs = sorted(runs, key=lambda item: age(item[0].run_id, item[0].started), reverse=True)[:limit]
    pinned = {baseline(one) for one in lists} - {None}
    for line in trouble:
        warn(line)
    if as_json:
        from workbench.project.command_reports import history_text

        write_line(sys.stdout, history_text(str(root), [(run, where, run.run_id in pinned) for run, where in runs]))
        return
    for run, where in runs:
        write_line(sys.stdout, _line(run, root, where, is_baseline=run.run_id in pinned))
    if not (kept or entries):
        write_line(sys.stderr, one_line(no_run_message(state), limit=1000))
    else:
        for line in not_shown(state):
            write_line(sys.stderr, one_line(line, limit=1000))


def _kept_in(state: Path, own: Path) -> str:
    """Return the state folder of a run below the project's own, relative to the root, or "" for the project's own."""
    return "" if state == own else state.relative_to(own.parent).as_posix()


def _kinds(run: "ListedRun") -> Iterator[str]:
    if run.by_function:
        yield "judged by a function"
    if run.other_criteria:
        yield "other criteria"
    if run.injected:
        yield "injected faults"
    if run.fork:
        yield f"fork of {run.fork}"
    if run.frozen:
        from workbench.results.frozen import frozen_count

        yield frozen_count(run.frozen, run.total)
    if run.scored_from:
        yield f"scored from {run.scored_from}"


def _line(run: "ListedRun", root: Path, kept_in: str, *, is_baseline: bool) -> str:
    from workbench.files.walk import relative_to
    from workbench.results.plain_lines import commit_words

    counts = run.outcomes
    counts["without a verdict"] = counts.pop("not_run")
    parts = [counted_status(status, count) for status, count in counts.items() if count]
    marks = ["baseline"] if is_baseline else []
    if kept_in:
        marks.append(f"in {kept_in}")
    if run.is_foreign:
        marks.append(f"{run.made_by} {relative_to(run.file, root)}")
    elif run.seconds is None:
        marks.append("did not end")
    elif run.interrupted:
        marks.append("interrupted")
    marks += _kinds(run)
    if run.commit:
        marks.append(commit_words(run.commit, run.dirty))
    took = "" if run.seconds is None else f" in {run.seconds:.1f} s"
    line = f"{run.run_id}  {few(run.agents) or '?'}: {', '.join(parts) or 'no cases'}{took}"
    return one_line(f"{line} ({', '.join(marks)})" if marks else line, limit=400)
