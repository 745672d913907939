"""The kinds of judges: which one a model's name means, and whether it can be asked.

Both are decided from the name and the environment alone, without asking and without any import of a client, so that a
run can say it before the first case.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workbench.judge.answering import Scrub
from workbench.judge.base import JudgeIdentity, JudgeOptions, NotAvailableError, Question
from workbench.judge.environment import JudgeEnvironment
from workbench.plugins import ExtensionPoint

if TYPE_CHECKING:
    # Importing it loads asyncio, which `check` can do without.
    from workbench.agents.functions import Functions


@dataclass(frozen=True)
class Connection:
    """What an answerer is made from: the first model that is asked, the agent's environment, the function that takes
    keys out of messages, and the agent's own Python functions, which are started at the first use."""

    model: str
    environment: JudgeEnvironment
    scrub: Scrub
    functions: "Callable[[], Functions]"


def _nothing_else(question: Question, model: str, environment: JudgeEnvironment) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class JudgeKind:
    """A kind of judge.

    `spelling` shows how its models are named. `answers_for` says whether a model is one of its own; it raises
    NotAvailableError for a name that is its own and malformed. `identify` says who judges and raises NotAvailableError
    if a key, a credential or a package is missing. `connect` is `module:attribute` of a function from a Connection to
    an Answerer; it is called in the scorer process, or for other packages in a child of that process.

    `determinants` are what an answer depends on besides the prompt, model, config and address; None if they are not
    known, and then no answer is kept. A kind that `takes_the_rest` is tried last.
    """

    name: str
    spelling: str
    answers_for: Callable[[str], bool]
    identify: Callable[[str, JudgeEnvironment], JudgeIdentity]
    connect: str
    determinants: Callable[[Question, str, JudgeEnvironment], Mapping[str, Any] | None] = _nothing_else
    takes_the_rest: bool = False


def _probe(kind: JudgeKind) -> None:
    with contextlib.suppress(NotAvailableError):
        kind.answers_for("heuristic")


JUDGES: Final = ExtensionPoint("judges", JudgeKind, probe=_probe)


def kind_of(model: str) -> JudgeKind:
    """Return the kind of judge that `model` names.

    Raises:
        NotAvailableError: it names none.
    """
    failures = []
    for kind in _in_order():
        try:
            is_its_own = kind.answers_for(model)
        except NotAvailableError:
            raise
        except Exception as error:
            if is_own(kind):
                raise
            failures.append(_failure(kind, error))
            continue
        if is_its_own:
            return kind
    hint = f"name one of: {', '.join(kind.spelling for kind in JUDGES.values())}"
    message = f"{model or 'an empty name'} is no judge that is known here"
    raise NotAvailableError("; ".join([message, *failures]), hint)


def is_own(kind: JudgeKind) -> bool:
    """Return whether the workbench itself brings a kind."""
    return JUDGES.extension(kind.name).is_own


def who_judges(options: JudgeOptions, environment: JudgeEnvironment) -> JudgeIdentity:
    """Return who answers with these options, for the agent of `environment`.

    Raises:
        NotAvailableError: nobody, because a key, a credential or an extra is missing, or the name is unknown.
    """
    kind = kind_of(options.model)
    if is_own(kind):
        return kind.identify(options.model, environment)
    try:
        identity = kind.identify(options.model, environment)
        if not isinstance(identity, JudgeIdentity):
            raise TypeError(f"identify returned a {type(identity).__name__}")
    except NotAvailableError:
        raise
    except Exception as error:
        way_out = f"update {JUDGES.extension(kind.name).package}, or name another judge"
        raise NotAvailableError(_failure(kind, error), way_out) from error
    return identity


def judges_by_rules(options: JudgeOptions) -> bool:
    """Return whether rules answer with these options, which is no call. A judge that cannot be asked is no rules."""
    try:
        return who_judges(options, JudgeEnvironment("", {})).by == "rules"
    except NotAvailableError:
        return False


def _failure(kind: JudgeKind, error: Exception) -> str:
    package = JUDGES.extension(kind.name).package
    return f"the judge {kind.name} of {package} failed: {type(error).__name__}: {error}"


def _in_order() -> Iterator[JudgeKind]:
    """Yield the kinds as a name is given to them. A plugin is only imported for a name that none of ours claims."""
    late = []
    for kind in JUDGES.values():
        if kind.takes_the_rest:
            late.append(kind)
        else:
            yield kind
    yield from late
