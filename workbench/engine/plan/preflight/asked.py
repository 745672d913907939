"""Who will be asked, and what will not take place because nobody can be."""

from collections import defaultdict
from collections.abc import Iterator

from workbench.engine.plan.preflight.looked import Looked, asking, listed, where
from workbench.engine.plan.preflight.sight import Sight
from workbench.events import Noticed
from workbench.judge.base import JudgeIdentity, NotAvailableError


def not_evaluated(sight: Sight) -> Iterator[Noticed]:
    """Criteria for which nobody can be asked."""
    causes: dict[tuple[str, str], list[tuple[Looked, str]]] = defaultdict(list)
    for item in sight.played():
        for criterion in asking(item):
            who = sight.judge(item.agent, criterion)
            if isinstance(who, NotAvailableError):
                causes[str(who), who.hint].append((item, criterion.name))
    for (cause, hint), affected in causes.items():
        names = listed(dict.fromkeys(name for _, name in affected))
        yield Noticed("warning", f"{names} will not be evaluated in {where(affected)}: {cause}", hint)


def not_played(sight: Sight) -> Iterator[Noticed]:
    """Simulated conversations that will not take place."""
    causes: dict[tuple[str, str], list[tuple[Looked, str]]] = defaultdict(list)
    for item, found in sight.not_played():
        causes[found.cause, found.hint].append((item, ""))
    for (cause, hint), affected in causes.items():
        yield Noticed("warning", f"{where(affected)} with a simulated user will not be played: {cause}", hint)


def judges(sight: Sight) -> Iterator[Noticed]:
    """Judges of whom something must be said: rules instead of a model, an address that is not the service's own."""
    used: dict[JudgeIdentity, dict[str, None]] = defaultdict(dict)
    for item in sight.played():
        for criterion in asking(item):
            who = sight.judge(item.agent, criterion)
            if isinstance(who, JudgeIdentity):
                used[who][criterion.name] = None
        player = sight.player(item)
        if player is not None:
            used[player]["simulated users"] = None
    for identity, names in used.items():
        if identity.by == "rules":
            yield Noticed("info", f"{listed(names)}: the judge is {identity.note}")
        if identity.base_url:
            yield Noticed("info", f"{identity.model} is asked at {identity.base_url} ({listed(names)})")
