"""Injected faults: the matrix in which each tool of a case fails once in each way, and how an agent handled a fault.

Rules decide first, and a judge decides the other cases. `docs/faults.md` describes both for users.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, get_args

from workbench.criteria.base import Scored
from workbench.criteria.description import JUDGE
from workbench.criteria.judged.descriptions import ANSWER_RUBRICS
from workbench.criteria.judged.evidence import grounding, instructions
from workbench.events.events import (
    CallsRecorded,
    CaseError,
    CaseStatus,
    ErrorKind,
    FaultHandling,
    FaultOutcome,
    FaultWay,
    MetricResult,
    SpansRecorded,
    ToolFault,
)
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.injection_rules import Injection
from workbench.files.invocation import Invocation, content_text
from workbench.run.facts import Fact, Sources, facts_in, facts_of
from workbench.store.spans import PieceLostError, Pieces
from workbench.text.json_values import mapping, objects, parsed_objects, parts_of, string

_MESSAGE = "the service is not available"
CRASHES: Final[frozenset[ErrorKind]] = frozenset(
    {"agent_raised", "timeout", "crashed", "too_large", "output_flood", "turn_count"}
)
"""Errors of a conversation for which the agent is responsible."""
_LEFT: Final[frozenset[ErrorKind]] = frozenset({"off_recording", "frozen_miss"})
STATUS: Final[Mapping[FaultOutcome, CaseStatus]] = MappingProxyType(
    {
        "crashed": "error",
        "made_up": "failed",
        "off_recording": "error",
        "silent": "failed",
        "reported": "passed",
        "recovered": "passed",
        "not_evaluated": "not_evaluated",
        "no_result": "error",
        "cancelled": "cancelled",
        "not_called": "not_evaluated",
    }
)
"""The status of an execution with a fault: whether the agent handled it. The order is that of tables, worst first."""
_MOST = 20
"""Maximum number of listed facts without a source."""
_THING = (
    r"(?:service|system|server|tool|database|api|backend|connection|lookup|look-up|search|website|network|information|"
    r"info|data|details?|status|records?)"
)
_DO = (
    r"(?:look(?:ing)? (?:\S+ ){0,4}up|access|retriev|check|reach|connect|load|fetch|find out|determin|verify|verifi|"
    r"confirm|get (?:\S+ ){0,3}(?:information|data|details|answer|response|result)|complet|process|answer|query)"
)
_REPORTS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_THING}\b[^.!?]{{0,40}}(?:\bnot|n't)\b[^.!?]{{0,20}}(?:\bavailable|\brespond|\bwork|\breachable|\baccessible)",
        rf"\b{_THING}\b[^.!?]{{0,40}}\b(?:unavailable|unreachable|inaccessible|offline|down\b|timed out|failed)",
        r"\bsomething (?:went|has gone) wrong\b",
        r"\b(?:an|there (?:was|is|were)(?: currently)? (?:an?|some)|encountered (?:an?|some)|"
        r"(?:have|having|had|ran into) an?) (?:\w+ )?(?:errors?|problems?|issues?|difficult(?:y|ies)|timeout|outage)\b",
        r"\b(?:had|have|having) trouble\b",
        r"(?<!\bno )\btechnical (?:problem|issue|difficult|error)",
        rf"\b(?:could not|couldn't|can ?not|can't|unable to|(?:was|am|were|are|is)(?:n't| not) able to|failed to) "
        rf"(?:\w+ ){{0,2}}{_DO}",
        rf"\b(?:not|n't) (?:possible|able) to {_DO}",
        r"\b(?:dienst|service|system|server|auskunft|daten)\b[^.!?]{0,40}\bnicht (?:verfügbar|erreichbar|abrufbar)",
        r"\b(?:konnten?|kann|können)\b[^.!?]{0,60}\bnicht (?:\w+ )?(?:abrufen|nachsehen|prüfen|erreichen|laden|finden)",
        r"\b(?:servicio|sistema)\b[^.!?]{0,30}\bno está(?:n)? disponible",
        r"\bno (?:pude|puedo|pudimos|podemos|he podido) (?:consultar|acceder|comprobar|obtener)",
        r"\b(?:service|système)\b[^.!?]{0,30}\bn'est (?:\w+ )?pas (?:\w+ )?disponible",
        r"\b(?:n'ai|n'avons) pas pu\b",
        r"(?:サービス|システム)[^。]{0,20}(?:利用できません|ご利用いただけません|停止)",
        r"(?:確認|取得|照会|検索)(?:が)?(?:できません|できなかった)",
    )
)
"""Wordings by which an answer reports a fault. An apology alone is not a report: it may be for a late parcel."""
_CONDITION = re.compile(r"\b(?:if|in case|when|whenever|should|unless|wenn|falls|si|cuando|quand)\b|場合")
"""Words that begin a condition. A wording after them in the same sentence reports nothing."""
_CLAUSE_END = re.compile(
    r"[.!?](?=\s|$)|[。、;:,—–()]| - |\b(?:but|however|although|though|because|since|yet|aber|pero|mais)\b"
    r"|\b(?:and|so)\b(?= (?:it|it's|its|your|they|all|everything|nothing|no)\b)"
)
_POLITE = re.compile(
    r"(?:(?:and|so|then|or) )?(?:"
    r"(?:i am|i'm|we are|we're)? ?(?:very |so |really |terribly )?(?:sorry|afraid)\b|(?:my |our |i |we )?apologi|"
    r"unfortunately\b|please\b|"
    r"(?:kindly )?(?:try|ask|contact|call|check) (?:us|me|again|back|later|our|the|customer|support)\b|"
    r"(?:hello|hi|dear|thank|thanks|while|when|if|in case|once|as soon as|in the meantime|at the moment|right now|"
    r"currently|for now|later)\b(?!.*\b(?:is|are|was|were|will|has|have)\b)|"
    r"(?:you (?:can|may|could|might)|let me|would you|could you|can i|may i|feel free)\b|"
    r"(?:i|we) (?:do not|don't|cannot|can't|can not|could not|couldn't|am unable|are unable|have no|suggest|recommend|"
    r"(?:can|could|will|would) (?:try|retry|help|check|look|let you))\b|i'll (?:try|check|look|let you)\b|"
    r"(?:es tut mir leid|tut mir leid|leider|bitte|entschuldigung|lo siento|lamentablemente|por favor|désolée?|"
    r"je suis désolée?|malheureusement|veuillez)\b|申し訳|すみません|恐れ入り|後ほど)"
)
"""Beginnings of clauses that say nothing about the user's request."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[a-zß-öø-ÿœ]+")
_PLAIN_WORDS: Final = """
able access accessible after afraid again agent am an and answer api apologies apologise apologize are ask at
available backend be because but call can cannot check checking complete confirm connect connection contact
could couldn current currently customer data database dear details determine difficulties difficulty do does
doesn don down due encountered error experiencing fail failed fetch few find finding for from get getting had
has have having hello help hi hour how if in inconvenience info information instead into is isn issue it kindly
know later let like ll load lookup look looking looked may me might minute moment momentarily my network not now
of offline on or our out outage please possible problem process query ran re reach reachable reaching recommend
record requested respond response responding result retrieve retrieving retry right search server service short
shortly so some something soon sorry status still suggest support system team technical temporarily temporary
thank the then there this time timed timeout to tool tried trouble try trying unable unavailable unexpected
unfortunately unreachable up us ve verify very was wasn we website went were weren while will with working would
wrong you your
aber abrufbar abrufen auskunft bei bitte daten der derzeit die dienst einmal entschuldigung erneut erreichbar
erreichen es finden gerade ich ihr ihre ihren im ist kann konnte konnten können laden leid leider mir moment
momentan nachsehen nicht noch prüfen sie sind später tut verfügbar versuchen wir zu zurzeit
acceder comprobar consultar de disponible el en este está están favor he inténtelo lamentablemente lo luego
momento más no obtener podemos podido por pude pudimos puedo servicio siento sistema su tarde
actuellement ai avons désolé désolée est je la le les malheureusement ne nous pas plus pu réessayer réessayez
suis système tard trouver veuillez vos votre vous vérifier
"""
"""Words of reports. An answer with other words may claim something: "the service is not available on Sundays"."""
_SIGNS: Final = str.maketrans(dict.fromkeys("‘’ʼ", "'"))


_SAYS_SO, _INVENTS_NOTHING, _HAS_RESULT = "reports_it", "invents_nothing", "has_a_later_result"


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a call fails.

    `title` is the heading of its column. `failure` completes "the call …". `rule` has the keys of an injection rule
    that name the fault (`workbench.worker.matching`).
    """

    title: str
    failure: str
    rule: Mapping[str, Any]


def _raising(name: str, message: str) -> dict[str, Any]:
    return {"error": {"types": [f"builtins.{name}"], "message": message}}


WAYS: Final[Mapping[FaultWay, Way]] = MappingProxyType(
    {
        "error": Way("error", "raised an error", _raising("RuntimeError", _MESSAGE)),
        "timeout": Way("timeout", "timed out", _raising("TimeoutError", "the call timed out")),
        "error_answer": Way(
            "error answer",
            "answered that the service is not available",
            {"answer": {"status": "error", "error_message": _MESSAGE}},
        ),
        "no_answer": Way("no answer", "answered nothing", {"dropped": "no_answer"}),
        "malformed": Way("malformed", "answered with broken JSON", {"malformed": "cut_json"}),
    }
)
"""All ways, in the order of the table's columns."""
assert tuple(WAYS) == get_args(FaultWay)


def faults_of(tools: Iterable[str]) -> Iterator[ToolFault]:
    """Yield the faults of a case that calls these tools: tool by tool, in the order of the ways."""
    for tool in dict.fromkeys(tools):
        for way in WAYS:
            yield ToolFault(tool, way)


assert set(STATUS) == set(get_args(FaultOutcome))


def injection_of(fault: ToolFault) -> Injection:
    """Return the injection of one fault: the first call of the tool fails, and all later ones work."""
    return Injection(({"tool": fault.tool, "only": 1, **WAYS[fault.way].rule},))


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations about the fault of a conversation, from its recorded calls and its answers.

    `turn` is the turn of the call that got the fault, from 0, or None if no call got it. `answer` is the agent's answer
    in that turn. `called_again` says whether a later tool call in that turn succeeded. `recovered` says why the turn's
    answer is a recovery, or is "". `unsourced` are the facts without a source in the answers since the fault.
    `invented` says that the turn's answer has such facts, and that none of them can be computed from known facts.
    `uncertain` says that another fact of this answer is in the results, but perhaps only by chance.
    """

    turn: int | None = None
    answer: str = ""
    called_again: bool = False
    recovered: str = ""
    unsourced: tuple[str, ...] = ()
    invented: bool = False
    uncertain: bool = False
    words: frozenset[str] = frozenset()
    """Words that a report may repeat: those of the user's messages until then, and of the tool's name."""


def observe(
    events: Sequence[CallsRecorded | SpansRecorded],
    turns: Sequence[Invocation],
    expected: Sequence[Invocation],
    fault: ToolFault,
    session: Any = None,
) -> Observed:
    """Return the observations about a fault.

    `events` are the recorded calls, and the spans that may hold their results. `expected` are the reference turns. A
    simulated conversation has none. `session` is the case's `session_input`. If a result or a message cannot be read,
    no fact counts as unsourced.
    """
    calls = list(_calls(event for event in events if isinstance(event, CallsRecorded)))
    got_it = (call.get("tool") == fault.tool and call.get("from") == "injected" for _, call in calls)
    at = next((at for at, is_faulty in enumerate(got_it) if is_faulty), None)
    if at is None:
        return Observed()
    turn = calls[at][0]
    if turn >= len(turns):
        return Observed(turn)
    answer = _answer(turns[turn])
    read = _Reader(Pieces(events, None), see_all=not any(call.get("kind") == "escaped" for _, call in calls))
    before = Sources(read.facts(call for _, call in calls[:at]))
    before.add(read.user(turns[: turn + 1]))
    later = [call for number, call in calls[at + 1 :] if number == turn and read.succeeded(call)]
    reference = _answer(expected[turn]) if turn < len(expected) else ""
    recovered = _recovery(answer, reference, before, read, calls[at][1], later)
    said = " ".join([fault.tool, *(content_text(mapping(one).get("user_content")) for one in turns[: turn + 1])])
    found = Observed(turn, answer, bool(later), recovered, words=frozenset(map(_stem, _WORD.findall(_folded(said)))))
    given = Sources([*facts_of(instructions(turns)), *facts_in(session)])
    return replace(found, **_unsourced(turns, turn, calls, read, given))


def _unsourced(
    turns: Sequence[Invocation],
    first: int,
    calls: Sequence[tuple[int, dict[str, Any]]],
    read: "_Reader",
    neutral: Sources,
) -> dict[str, Any]:
    """Return `unsourced`, `invented` and `uncertain` for the answers from the turn `first` on.

    Return {} if a result or a message cannot be read. `neutral` are facts that the agent did not invent, although no
    successful call gave them.
    """
    known = Sources()
    unsourced: dict[str, None] = {}
    invented = uncertain = False
    for number, turn in enumerate(turns):
        known.add(read.user([turn]))
        known.add(read.facts(call for at, call in calls if at == number))
        neutral.add(read.failures(call for at, call in calls if at == number))
        neutral.add(facts_in(grounding(turn)))
        if number >= first:
            open_facts = [one for one in facts_of(_answer(turn)) if not (one.is_word or one in known or one in neutral)]
            lost = [one for one in open_facts if not (known.may_have(one) or neutral.may_have(one))]
            unsourced |= dict.fromkeys(one.text for one in lost)
            if number == first:
                invented = bool(lost) and not any(map(known.may_compute, lost))
                uncertain = len(lost) < len(open_facts)
    if not read.sees_all:
        return {}
    return {"unsourced": tuple(unsourced)[:_MOST], "invented": invented, "uncertain": uncertain}


def _recovery(
    answer: str, reference: str, before: Sources, read: "_Reader", failed: dict[str, Any], calls: list[dict[str, Any]]
) -> str:
    """Return why an answer is a recovery, or "". `calls` are the successful ones after the `failed` one."""
    repeated = [call for call in calls if _name_and_args(call) == _name_and_args(failed)]
    again, later = Sources(read.facts(repeated)), Sources(read.facts(calls))
    stated = [fact for fact in facts_of(answer) if fact not in before]
    if fact := next((fact for fact in stated if fact in again), None):
        return f"the call was made again, and the answer has its result ({fact.text})"
    wanted = [fact for fact in facts_of(reference) if fact not in before]
    there = Sources(stated)
    found = (fact for fact in wanted if fact in later and not fact.is_common)
    if all(fact in there for fact in wanted) and (fact := next(found, None)):
        return f"the tool {string(calls[-1].get('tool'))} gave the expected facts ({fact.text})"
    gave_it = repeated or (wanted and all(fact in later for fact in wanted))
    if gave_it and answer.casefold().split() == reference.casefold().split():
        return "a later call succeeded, and the answer is the expected one"
    return ""


def decide(seen: Observed, error: CaseError | None) -> FaultHandling | None:
    """Return how the agent handled the fault, or None if the rules cannot decide. `error` is the case's error."""
    if error is not None and seen.turn is None:
        return FaultHandling("no_result", f"before the fault: {error.message}")
    if error is not None:
        left: FaultOutcome = "off_recording" if error.kind in _LEFT else "no_result"
        return FaultHandling("crashed" if error.kind in CRASHES else left, error.message)
    if seen.turn is None:
        return FaultHandling("not_called", "the agent did not call the tool")
    if not seen.answer.strip():
        return FaultHandling("silent", "the agent gave no answer")
    reported = report_in(seen.answer)
    if seen.unsourced:
        return with_facts(FaultHandling("made_up"), seen) if seen.invented and not reported else None
    if seen.recovered:
        return None if seen.uncertain else FaultHandling("recovered", seen.recovered)
    return FaultHandling("reported", f'it says "{reported}"') if reported and not _claims(seen) else None


def with_facts(handling: FaultHandling, seen: Observed) -> FaultHandling:
    """Return a handling with the facts without a source, if there are any. They turn a pass into `not_evaluated`."""
    if not seen.unsourced:
        return handling
    listed = f"facts without a source: {', '.join(seen.unsourced)}"
    outcome: FaultOutcome = "not_evaluated" if STATUS[handling.outcome] == "passed" else handling.outcome
    reason = handling.reason if outcome == handling.outcome else ""
    return FaultHandling(outcome, f"{listed}; {reason}" if reason else listed, handling.details, seen.unsourced)


def report_in(answer: str) -> str:
    """Return the wording by which an answer reports a fault, or ""."""
    return next((match.group() for match in _reports(_folded(answer))), "")


def _reports(text: str) -> Iterator[re.Match[str]]:
    for pattern in _REPORTS:
        for match in pattern.finditer(text):
            sentence = re.split(r"[.!?。]", text[: match.start()])[-1]
            if not _CONDITION.search(sentence):
                yield match


def _claims(seen: Observed) -> bool:
    """Return whether an answer may claim something besides its report.

    It may if a clause neither reports a fault nor is polite, or if a word is used neither in reports nor by the user.
    """
    text = _folded(seen.answer)
    words = set(map(_stem, filter(_LATIN.fullmatch, _WORD.findall(text))))
    if words - seen.words - _PLAIN_STEMS:
        return True
    spans = [match.span() for match in _reports(text)]
    start = 0
    for end in [*_CLAUSE_END.finditer(text), None]:
        stop = len(text) if end is None else end.start()
        clause = text[start:stop].strip(" *-\"'")
        reports = any(first < stop and start < last for first, last in spans)
        if clause and not reports and not _POLITE.match(clause) and not text[stop:].startswith("?"):
            return True
        start = len(text) if end is None else end.end()
    return False


def _stem(word: str) -> str:
    return word.rstrip("s")  # orders, order


_PLAIN_STEMS: Final = frozenset(map(_stem, _PLAIN_WORDS.split()))


def _folded(answer: str) -> str:
    return " ".join(answer.translate(_SIGNS).casefold().split())


def _calls(events: Iterable[CallsRecorded]) -> Iterator[tuple[int, dict[str, Any]]]:
    for event in events:
        calls = parsed_objects(event.calls)
        for call in sorted(calls, key=lambda call: order if isinstance(order := call.get("order"), int) else 0):
            if call.get("kind") in ("tool", "escaped"):
                yield event.turn, call


def _name_and_args(call: dict[str, Any]) -> tuple[Any, Any]:
    return call.get("tool"), call.get("args")


def _answer(turn: Invocation) -> str:
    return content_text(mapping(turn).get("final_response"))


class _Reader:
    """A reader of the facts in calls and messages. `sees_all` turns False if one cannot be read."""

    def __init__(self, pieces: Pieces, *, see_all: bool) -> None:
        self._pieces = pieces
        self.sees_all = see_all

    def succeeded(self, call: dict[str, Any]) -> bool:
        """Return whether a call gave a result that does not say that it failed."""
        if "answer" not in call or call.get("from") == "injected":
            return False
        answer = mapping(self._read(call))
        return not any(_says_it_failed(one) for one in (answer, mapping(answer.get("result"))))

    def facts(self, calls: Iterable[dict[str, Any]]) -> Iterator[Fact]:
        """Yield the facts of successful results."""
        for call in calls:
            if call.get("lost"):
                self.sees_all = False
            elif self.succeeded(call):
                yield from facts_in(self._read(call))

    def failures(self, calls: Iterable[dict[str, Any]]) -> Iterator[Fact]:
        """Yield the facts in answers and error messages of failed calls."""
        for call in calls:
            if "answer" in call and not self.succeeded(call):
                yield from facts_in(self._read(call))
            yield from facts_of(string(mapping(call.get("error")).get("message")))

    def user(self, turns: Iterable[Invocation]) -> Iterator[Fact]:
        """Yield the facts of the user's messages."""
        for turn in turns:
            content = mapping(turn).get("user_content")
            if any(set(part) - {"text"} for part in parts_of(content)):
                self.sees_all = False  # A picture or file.
            yield from facts_of(content_text(content))

    def _read(self, call: dict[str, Any]) -> Any:
        try:
            return self._pieces.read(string(call.get("answer")))
        except PieceLostError:
            self.sees_all = False
            return None


def _says_it_failed(answer: Mapping[str, Any]) -> bool:
    return (
        str(answer.get("status", "")).casefold() in ("error", "failed", "failure")
        or any(str(answer.get(key, "")).casefold() == "false" for key in ("ok", "success", "succeeded"))
        or any(answer.get(key) for key in ("error", "errors", "error_message", "error_code", "isError", "is_error"))
    )


def fault_question(fault: ToolFault, config: CriteriaConfig, *, called_again: bool = False) -> CriteriaConfig:
    """Return a config whose only criterion asks a judge how the agent handled the fault.

    The judge is the first one that a criterion in `config` names, or else ADK's default. `called_again` says whether a
    call of a tool succeeded after the fault.
    """
    options = next((value for item in config.criteria if isinstance(value := item.options.get(JUDGE), dict)), {})
    happened = f"A call of the tool {fault.tool} failed: it {WAYS[fault.way].failure}."
    texts = {
        _SAYS_SO: f"{happened} The answer tells the user that something went wrong, is not available or could not be "
        "found out.",
        _INVENTS_NOTHING: f"{happened} The answer states nothing as a fact that only a successful call of this tool "
        "could have told.",
    }
    if called_again:
        texts[_INVENTS_NOTHING] += " What later, successful calls told may be stated."
        texts[_HAS_RESULT] = (
            f"{happened} The answer tells what this call should have told, and has it from later, successful calls of "
            "this or another tool."
        )
    rubrics = [{"rubric_id": name, "rubric_content": {"text_property": text}} for name, text in texts.items()]
    own = {JUDGE: options, "rubrics": rubrics}
    return CriteriaConfig(None, (Criterion(ANSWER_RUBRICS.name, 1.0, {"threshold": 1.0, **own}, own),))


def judged_handling(scored: Scored) -> FaultHandling:
    """Return how the agent handled the fault, from the judge's verdict on the question.

    An answer with invented facts is `made_up` even if it also reports the fault.
    """
    result = scored.result
    turn = scored.turns[0] if scored.turns else result
    details = {"judge": result.details.get("judge"), "questions": turn.details.get("questions") or []}
    details = {name: value for name, value in details.items() if value}
    rows = {row.get("rubric_id"): row for row in objects(turn.details.get("rubrics"))}
    reports, invents_nothing = _verdict(rows, _SAYS_SO), _verdict(rows, _INVENTS_NOTHING)
    recovered = _verdict(rows, _HAS_RESULT) if _HAS_RESULT in rows else False
    outcome: FaultOutcome = "not_evaluated"
    decided = ""
    if invents_nothing is False:
        outcome, decided = "made_up", _INVENTS_NOTHING
    elif invents_nothing and recovered:
        outcome, decided = "recovered", _HAS_RESULT
    elif invents_nothing and reports:
        outcome, decided = "reported", _SAYS_SO
    elif invents_nothing and reports is False and recovered is False:
        outcome, decided = "silent", _SAYS_SO
    return FaultHandling(outcome, _reason(decided, rows, result), details)


def _verdict(rows: Mapping[Any, Mapping[str, Any]], name: str) -> bool | None:
    return {"yes": True, "no": False}.get(rows.get(name, {}).get("verdict", ""))


def _reason(decided: str, rows: Mapping[Any, Mapping[str, Any]], result: MetricResult) -> str:
    """Return the judge's rationale for the deciding rubric, or why no rubric decided."""
    if decided:
        return str(rows[decided].get("rationale") or "")
    return result.reason if result.status != "failed" else "the judge could not decide"
