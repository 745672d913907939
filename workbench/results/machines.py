"""Texts about other machines: the machines of a place, the machine of a case, and its lost attempts.

All text is safe for a terminal. Names and reasons may come from other machines.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from workbench.events.events import LostAttempt
from workbench.files.run_options import PlaceChoice
from workbench.results.cells import cell_len, cut_name, fit
from workbench.results.lines import Line, hang_text
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.run.dask.files import MachineState, Sending

_GONE = ("lost", "unusable")
_STYLES = {"ready": "status-passed", "lost": "status-error", "unusable": "status-error"}
_MOST_LEFT_OUT = 8
"""Maximum number of files that are named as not sent."""


def machine_name(name: str) -> str:
    """Return the name of a machine, which may come from that machine, as safe text."""
    return one_line(name, limit=100)


def placed_words(record: CaseRecord) -> str:
    """Return the machine and the attempt: `on two, attempt 3`, or "" for a first attempt on this machine."""
    words = [f"on {machine_name(record.machine)}"] if record.machine else []
    return ", ".join([*words, *([f"attempt {record.attempt}"] if record.attempt > 1 else [])])


def lost_words(lost: LostAttempt) -> str:
    """Describe a lost attempt: `attempt 1 on one was lost: the connection was closed`."""
    where = f" on {machine_name(lost.machine)}" if lost.machine else ""
    why = one_line(lost.why.removeprefix(f"{lost.machine}: "), limit=300)
    return f"attempt {lost.attempt}{where} was lost: {why}"


def placed_texts(record: CaseRecord) -> Iterator[str]:
    """Yield the machine and the attempt of a case, then each lost attempt."""
    if words := placed_words(record):
        yield words
    yield from map(lost_words, record.lost)


def place_words(choice: PlaceChoice) -> str:
    """Return a place with its name in the settings, if any: `dask://h:1`, or `cluster (dask://h:1)`."""
    word = one_line(choice.word, limit=100)
    return f"{one_line(choice.name, limit=60)} ({word})" if choice.name else word


def megabytes(size: int) -> str:
    """Return a size in bytes as `0 MB`, `0.1 MB`, `3.2 MB` or `1,204 MB`."""
    if not size:
        return "0 MB"
    return f"{max(size / 1e6, 0.1):.1f} MB" if size < 1e8 else f"{size / 1e6:,.0f} MB"


def sending_lines(sending: "Sending") -> Iterator[str]:
    """Yield the data that would leave this machine, for the user to confirm."""
    where = one_line(sending.address, limit=200)
    named = one_line(sending.place, limit=100)
    plain = "not encrypted: others on the network can read and change the data"
    yield f"place      {where if where == named else f'{named} ({where})'}"
    yield f"           {'encrypted' if sending.is_encrypted else plain}"
    yield f"root       {one_line(str(sending.root), limit=300)}"
    yield f"files      {counted(len(sending.sizes), 'file')}, {megabytes(sum(sending.sizes.values()))}"
    yield f"variables  {', '.join(map(one_line, sending.variables)) or 'none'}"
    yield "           Whoever controls the scheduler or a worker can read all that, and run code there as you."
    # The least surprising files come last.
    left = sorted(sending.left_out.items(), key=lambda item: "hidden" in item[1] or "travel instead" in item[1])
    for name, why in left[:_MOST_LEFT_OUT]:
        yield f"  stays    {one_line(name, limit=150)}: {one_line(why, limit=150)}"
    if len(sending.left_out) > _MOST_LEFT_OUT:
        yield f"  stay     {len(sending.left_out) - _MOST_LEFT_OUT} more (check --on PLACE --list)"


def fleet_brief(states: "Sequence[MachineState]") -> tuple[str, str]:
    """Return how busy the machines are, in full and in short: `2 machines 7/16` and `7/16 on 2`, or "" without any."""
    if not states:
        return "", ""
    usable = [state for state in states if state.phase not in _GONE]
    ready = [state for state in usable if state.phase == "ready" or state.running]
    if not ready:
        doing = next((phase for phase in ("preparing", "connecting") if any(s.phase == phase for s in usable)), "lost")
        return f"{counted(len(usable) or len(states), 'machine')} {doing}", f"machines {doing}"
    busy = f"{sum(state.running for state in ready):,}/{sum(state.slots for state in ready):,}"
    return f"{counted(len(ready), 'machine')} {busy}", f"{busy} on {len(ready):,}"


def fleet_busy(states: "Sequence[MachineState]") -> str:
    """Describe the work of the machines: `2 machines: 12 running, 40 done, last sign of life 1 s ago`, or the wait."""
    if not states:
        return "waiting for a machine"
    present = [state for state in states if state.phase not in _GONE]
    doing = f"{sum(state.running for state in states):,} running, {sum(state.done for state in states):,} done"
    seen = f", last sign of life {min(state.seen for state in present):.0f} s ago" if present else ""
    return f"{counted(len(present), 'machine')}: {doing}{seen}"


def fleet_line(place: str, states: "Sequence[MachineState]", new: Sequence[str]) -> str:
    """Describe a place: `on dask://h:1: 2 machines, 16 slots`. `new` machines are named, unless all are new."""
    ready = [state for state in states if state.phase == "ready" or state.running]
    total = f"{counted(len(ready), 'machine')}, {counted(sum(state.slots for state in ready), 'slot')}"
    also = f" (new: {few(map(machine_name, new))})" if len(new) < len(ready) else ""
    return f"on {place}: {total}{also}"


def machine_line(state: "MachineState", cases: int) -> str:
    """Describe a machine that ran `cases` cases: `one: 12 cases, 1 attempt lost`."""
    words = [counted(cases, "case"), *([f"{counted(state.lost, 'attempt')} lost"] if state.lost else [])]
    gone = [f"{state.phase}: {_why(state)}"] if state.phase in _GONE else []
    return f"{machine_name(state.name)}: {', '.join([*words, *gone])}"


def machine_facts(state: "MachineState", imported: Sequence[str]) -> str:
    """Describe a checked machine: `one: Python 3.12.4, Linux, 8 processors; imported desk`."""
    about = [one_line(state.about, limit=200)] if state.about else []
    agents = few(map(one_line, imported), most=10) or "no agent"
    return f"{machine_name(state.name)}: {'; '.join([*about, f'imported {agents}'])}"


def machine_lines(states: "Sequence[MachineState]", width: int) -> Iterator[Line]:
    """Yield a table of the machines, `width` cells wide, with running cases and reasons below each machine."""
    if not states:
        yield Text.styled(" No other machine yet. Press o to set the place of the next run.", "muted")
        return
    names = [cut_name(machine_name(state.name), min(40, max(8, width - 53))) for state in states]
    room = max(map(cell_len, [*names, "machine"]))
    yield Text.styled(f" {fit('machine', room)}  {'phase':10}  running/slots   done  lost  last sign", "label")
    for name, state in zip(names, states, strict=True):
        busy = f"{state.running:,}/{state.slots:,}" if state.phase != "connecting" else ""
        yield Text.assemble(
            f" {fit(name, room)}  ",
            (f"{state.phase:10}", _STYLES.get(state.phase, "status-running")),
            f"  {busy:>13}  ",
            f"{state.done:>5,}  ",
            (f"{state.lost:>4,}", "status-error" if state.lost else "muted"),
            (f"  {state.seen:>7.0f} s", "muted"),
        )
        if state.cases:
            turns = (f"{one_line(case, limit=60)}{f' turn {turn}' if turn else ''}" for case, turn in state.cases)
            yield from hang_text(Text(), Text.styled(few(turns, most=4), "muted"), width - 3, 3)
        if state.why:
            yield from hang_text(Text(), Text.styled(_why(state), "muted"), width - 3, 3)


def _why(state: "MachineState") -> str:
    return one_line(state.why.removeprefix(f"{state.name}: "), limit=500)
