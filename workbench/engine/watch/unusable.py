"""Evalsets and configs that cannot be used as they stand, and evalsets that lost their agent: their cases wait, as they
are, until that is mended."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from workbench.agents.workspace import EvalsetEntry
from workbench.engine.watch.half_written import FileFault
from workbench.engine.watch.snapshot import Key
from workbench.metrics.registry import check_criteria
from workbench.model.criteria import CriteriaConfig
from workbench.model.faults import Fault


def is_refused(config: CriteriaConfig) -> bool:
    """Whether no run would start with these criteria."""
    return config.broken or any(fault.severity == "error" for fault in check_criteria(config))


def with_sound(now: EvalsetEntry, sound: EvalsetEntry | None) -> EvalsetEntry:
    """`now`; where its file cannot be read, with the cases that it had when it could (`sound`): what else is saved in
    the meantime concerns those."""
    if sound is None or not now.document.broken:
        return now
    return replace(now, document=sound.document)


def has_lost(entry: EvalsetEntry) -> bool:
    """Whether the agent of an evalset is gone."""
    return entry.agent is None and bool(entry.owned.lost)


def waiting_cases(entries: Iterable[EvalsetEntry], sound: Mapping[str, EvalsetEntry]) -> set[Key]:
    """The cases that cannot be run or scored before their evalset, their agent or their criteria are mended."""
    return {
        Key(entry.relative, case.eval_id)
        for entry in entries
        if entry.document.broken or has_lost(entry) or is_refused(entry.criteria.config)
        for case in with_sound(entry, sound.get(entry.relative)).document.cases
    }


def faults_of(entries: Iterable[EvalsetEntry]) -> list[FileFault]:
    """The first fault of each evalset and config that cannot be used."""
    found: dict[object, FileFault] = {}
    for entry in entries:
        if has_lost(entry):
            found.setdefault(entry.file, FileFault(entry.file, 0, entry.agent_reason))
        config = entry.criteria.config
        for fault in (*_first(entry.document.faults), *_first((*config.faults, *check_criteria(config)))):
            message = f"{fault.message}. {fault.hint}" if fault.hint else fault.message
            found.setdefault(fault.file, FileFault(fault.file, fault.line, message))
    return list(found.values())


def _first(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.severity == "error"][:1]
