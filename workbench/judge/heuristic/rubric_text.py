"""Rules for rubrics about an answer. Each takes a rubric (plain, without its negation) and what happened, and says
whether the property is there; None where the rule has nothing to say."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from workbench.judge.heuristic.claims import label
from workbench.judge.heuristic.languages import language
from workbench.judge.heuristic.quantities import Known, Quantity, quantities, without_quantities
from workbench.judge.heuristic.sentences import sentences
from workbench.judge.heuristic.situation import Situation, as_text, leaves
from workbench.judge.heuristic.units import MONEY
from workbench.judge.heuristic.words import bare, content_words, plain


@dataclass(frozen=True, slots=True)
class Finding:
    """`holds` is None where a rule applies and cannot tell."""

    holds: bool | None
    why: str


Rule: TypeAlias = Callable[[str, Situation], Finding | None]

_QUOTED = re.compile(r"\"([^\"]{1,200})\"|「([^」]{1,200})」|『([^』]{1,200})』|(?<!\w)'([^']{2,200})'(?!\w)")
_LANGUAGES = {
    "english": "en", "german": "de", "spanish": "es", "french": "fr", "portuguese": "pt", "italian": "it",
    "dutch": "nl", "russian": "ru", "japanese": "ja", "chinese": "zh", "korean": "ko", "arabic": "ar", "hindi": "hi",
    "thai": "th", "englisch": "en", "deutsch": "de", "日本語": "ja", "英語": "en", "中文": "zh", "español": "es",
    "français": "fr",
}  # fmt: skip
_IN_LANGUAGE = re.compile(rf"(?:\b(?:in|auf|en)\s|language is\s|^)(?:\w+\s)?({'|'.join(_LANGUAGES)})")
_USERS_LANGUAGE = re.compile(
    r"\blanguage of the (?:user|customer|question|guest)|\b(?:user|customer|guest|question)'s language|\bsame language"
    r"|\bsprache d(?:es|er) |ユーザーと同じ言語"
)
_LENGTH = re.compile(
    r"(?P<limit>at most|no more than|not more than|no longer than|maximum of|up to|fewer than|less than|shorter than|"
    r"under|within|below|at least|more than|longer than|exactly|a single|single|höchstens|mindestens|in|of)\s"
    r"(?P<number>\d+|one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|fifty|(?=sentence|word|paragraph|satz))"
    r"\s?(?P<what>sentence|word|paragraph|line|item|bullet|character|sätze|satz|wörter)"
)
_FORMATS = (
    (
        re.compile(r"\b(?:list|bullets?|bullet points?|numbered)\b"),
        re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.M),
        "a list",
    ),
    (re.compile(r"\b(?:link|url|hyperlink)\b"), re.compile(r"https?://\S|www\.\S|\]\(\S"), "a link"),
    (re.compile(r"\be-?mail address\b"), re.compile(r"\S@\S{1,80}\.\S"), "an e-mail address"),
    (re.compile(r"\b(?:phone|telephone) number\b"), re.compile(r"\+?\d[\d ()/-]{5,20}\d"), "a phone number"),
    (re.compile(r"\btable\b(?! for)"), re.compile(r"^\s*\|.*\|", re.M), "a table"),
    (re.compile(r"\bcode (?:block|example|snippet)\b"), re.compile(r"```|^ {4}\S", re.M), "a block of code"),
    (re.compile(r"\bemojis?\b"), re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]"), "an emoji"),
)
_ACTS = (
    (
        re.compile(r"\bapolog|\bsays sorry\b|\bentschuldigt|\bdisculp|謝罪|お詫び|謝る|道歉"),
        re.compile(r"\bsorry\b|\bapolog|\bregret|entschuldig|tut (?:mir|uns) leid|disculp|lo siento|désolé|desculp"
                   r"|申し訳|お詫び|すみません|抱歉|对不起|죄송"),
        "an apology",
    ),
    (
        re.compile(r"\bgreet|\bbegrüßt|\bsaluda|挨拶"),
        re.compile(r"\b(?:hello|hi|hey|dear|welcome|good (?:morning|afternoon|evening|day)|hallo|guten \w+|hola"
                   r"|buen[oa]s \w+|bonjour|olá|bom dia)\b|こんにちは|いらっしゃいませ|你好|您好|안녕"),
        "a greeting",
    ),
    (
        re.compile(r"\bthanks?\b|\bdankt\b|\bagradec|感謝"),
        re.compile(r"\bthank|\bdanke?\b|gracias|merci|obrigad|ありがとう|感谢|谢谢|감사"),
        "thanks",
    ),
    (
        re.compile(r"\brefus(?:es|al)|\bdeclines? to\b|\blehnt .*ab\b|断る"),
        re.compile(r"\b(?:cannot|can't|unable|not able|not allowed|won't|will not|must not)\b"
                   r"|\bkann (?:\w+ ){0,3}nicht\b"
                   r"|no puedo|できません|できかねます|不能|无法"),
        "a refusal",
    ),
)  # fmt: skip
_ASKS = re.compile(
    r"\b(?:asks?|requests?|fragt|pregunta|demande)\b(?: \w+){0,3}? (?:for|whether|if|about|what|which|nach|por) (.+)"
)
_QUESTION = re.compile(r"[?？]|please (?:give|tell|provide|name|send)|お知らせください|教えてください|ですか|ますか")
_FROM_TOOLS = re.compile(
    r"\b(?:every|each|all|the|any)\b.*\b(?:figures?|numbers?|amounts?|prices?|facts?|values?|information|details|claims?|"
    r"statements?|answer)\b.*\b(?:comes? from|taken from|match(?:es)?|in|based on|grounded|supported by|"
    r"consistent with|agrees? with|according to|backed by|equals?)\b.*\b(?:tools?|results?|calls?|outputs?|search)\b"
)
_STATES = re.compile(
    r"\b(?:stat(?:es|ing)|mention(?:s|ing|ed)?|nam(?:es|ing)|includ(?:es|ing)?|contain(?:s|ing)?|giv(?:es|ing)|says?|tells?|"
    r"explain(?:s|ing)?|list(?:s|ing)?|provid(?:es|ing)|report(?:s|ing)?|confirm(?:s|ing)?|shows?|promises?|recommends?|"
    r"suggests?|offer(?:s|ing)?|reveals?|describes?|disclos(?:es|e|ing)|mention|state|name|give|tell|provide|reveal|promise|"
    r"nennt|enthält|erwähnt|menciona|incluye|contiene|mentionne|contient|menciona|inclui|names the user's)\b\s+(.+)"
)
_FIGURE_WORDS = re.compile(r"\b(?:figures?|numbers?|amounts?|prices?|values?|sums?|costs?|dates?)\b")
_SPLIT = re.compile(r"\s*(?:,|;|\band\b|\bund\b|\by\b|\bet\b)\s*")
_YES_SHARE, _NO_SHARE = 0.6, 0.34


def quoted(rubric: str, happened: Situation) -> Finding | None:
    """ "X" in quotation marks must be in the answer, letter for letter but for case and blanks."""
    wanted = [next(filter(None, groups)) for groups in _QUOTED.findall(rubric)]
    if not wanted or happened.answer is None:
        return None
    text = plain(happened.answer)
    missing = [item for item in wanted if plain(item) not in text]
    either = re.search(r"\bor\b|\boder\b", rubric) is not None
    if missing and not (either and len(missing) < len(wanted)):
        return Finding(False, f"the answer does not hold {missing[0]!r}")
    found = next(item for item in wanted if item not in missing)
    return Finding(True, f"the answer holds {found!r}")


def tongue(rubric: str, happened: Situation) -> Finding | None:
    """The language of the answer."""
    named = _IN_LANGUAGE.search(rubric)
    wanted = _LANGUAGES[named[1]] if named else language(happened.user) if _USERS_LANGUAGE.search(rubric) else None
    if wanted is None or happened.answer is None:
        return None
    spoken = language(happened.answer)
    if not wanted or not spoken:
        return Finding(None, "the texts are too short to tell their language")
    return Finding(wanted == spoken, f"the answer is in {spoken!r}, wanted is {wanted!r}")


def length(rubric: str, happened: Situation) -> Finding | None:
    """Sentences, words, paragraphs, lines, items or characters, counted."""
    match = _LENGTH.search(rubric)
    if match is None or happened.answer is None:
        return None
    wanted = _number(match["number"])
    counted = _count(happened.answer, match["what"])
    limit = match["limit"]
    if limit in ("at least", "mindestens"):
        holds = counted >= wanted
    elif limit in ("more than", "longer than"):
        holds = counted > wanted
    elif limit in ("exactly", "a single", "single", "in", "of"):
        holds = counted == wanted
    elif limit in ("fewer than", "less than", "shorter than", "under", "below"):
        holds = counted < wanted
    else:
        holds = counted <= wanted
    return Finding(holds, f"counted {counted} × {match['what']}")


def form(rubric: str, happened: Situation) -> Finding | None:
    """Lists, links, tables and the like."""
    for asked, pattern, name in _FORMATS:
        if asked.search(rubric) and happened.answer is not None:
            holds = pattern.search(happened.answer) is not None
            return Finding(holds, f"the answer has {name if holds else 'nothing that looks like ' + name}")
    return None


def act(rubric: str, happened: Situation) -> Finding | None:
    """Apologies, greetings, thanks, refusals: by the words that make them."""
    for asked, pattern, name in _ACTS:
        if asked.search(rubric) and happened.answer is not None:
            match = pattern.search(plain(happened.answer))
            return Finding(match is not None, f"{match.group()!r} is {name}" if match else f"no word makes {name}")
    return None


def asks(rubric: str, happened: Situation) -> Finding | None:
    """A question that has the words of what is to be asked for."""
    match = _ASKS.search(rubric)
    if match is None or happened.answer is None:
        return None
    for sentence in sentences(happened.answer):
        if _QUESTION.search(plain(sentence)) and _share(match[1], sentence) >= 0.5:
            return Finding(True, f"the answer asks {sentence!r}")
    return Finding(False, f"the answer does not ask for {match[1]!r}")


def from_tools(rubric: str, happened: Situation) -> Finding | None:
    """Figures (or, where the rubric is about more than figures, whole sentences) against tool results."""
    if happened.answer is None or not _FROM_TOOLS.search(rubric):
        return None
    strange = [quantity for quantity in quantities(happened.answer) if quantity not in happened.known]
    if strange:
        return Finding(False, f"{strange[0].text!r} is in no tool result")
    if _FIGURE_WORDS.search(rubric):
        return Finding(True, "all figures of the answer are in tool results or in the user's message")
    context = [{"kind": "result", "name": call.name, "text": as_text(call.result)} for call in happened.calls]
    said = label(sentences(happened.answer), context)
    against = [claim for claim in said if claim.label in ("contradictory", "unsupported")]
    if any(claim.label == "contradictory" for claim in said):
        return Finding(False, against[0].rationale)
    return Finding(None, against[0].rationale) if against else Finding(True, "all sentences are found in tool results")


def states(rubric: str, happened: Situation) -> Finding | None:
    """What is to be mentioned: quantities by kind, values of tool results by their key, else words."""
    match = _STATES.search(rubric)
    if match is None or happened.answer is None:
        return None
    findings = [_stated(wanted, happened) for wanted in _SPLIT.split(match[1].strip(" .。")) if wanted.strip()]
    refuted = [finding for finding in findings if finding.holds is False]
    if refuted:
        return refuted[0]
    open_ones = [finding for finding in findings if finding.holds is None]
    if open_ones or not findings:
        return open_ones[0] if open_ones else None
    return Finding(True, "; ".join(finding.why for finding in findings))


def _stated(wanted: str, happened: Situation) -> Finding:
    answer = happened.answer or ""
    figures = quantities(wanted)
    if figures:
        missing = [quantity for quantity in figures if quantity not in Known(quantities(answer))]
        return Finding(not missing, f"{(missing or figures)[0].text!r} is {'not ' if missing else ''}in the answer")
    for words, test in _KINDS:
        if words.search(wanted):
            found = next((quantity for quantity in quantities(answer) if test(quantity)), None)
            why = f"{found.text!r} is one" if found else "nothing in the answer looks like one"
            return Finding(found is not None, f"{wanted}: {why}")
    value = _of_key(wanted, happened)
    if value is not None:
        holds = bare(value) in bare(answer) or _share(value, answer) >= _YES_SHARE
        return Finding(holds, f"{wanted}: {value[:80]!r} is {'' if holds else 'not '}in the answer")
    share = _share(wanted, answer)
    return Finding(
        True if share >= _YES_SHARE else False if share <= _NO_SHARE else None,
        f"{share:.0%} of the words of {wanted!r} are in the answer",
    )


def _of_key(wanted: str, happened: Situation) -> str | None:
    """The value that a tool gave under a key with the name of what is wanted."""
    words = set(content_words(wanted))
    for call in happened.calls:
        for key, value in leaves(call.result):
            name = content_words(plain(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key)))
            if name and words.issuperset(name) and content_words(plain(value)):
                return value
    return None


def _share(wanted: str, text: str) -> float:
    """How much of the words of one text another has; what is common to all rubrics does not count."""
    words = set(content_words(without_quantities(wanted))) - _COMMON
    had = set(content_words(plain(text)))
    return len(words & had) / len(words) if words else 0.0


def _count(text: str, what: str) -> int:
    if what in ("sentence", "sätze", "satz"):
        return len(sentences(text))
    if what in ("word", "wörter"):
        return len(text.split())
    if what == "paragraph":
        return len([part for part in re.split(r"\n[ \t]*\n", text) if part.strip()])
    if what == "character":
        return len(text)
    if what == "line":
        return len([line for line in text.splitlines() if line.strip()])
    return len(re.findall(r"^[ \t]*(?:[-*•]|\d+[.)])\s", text, re.MULTILINE))


def _number(word: str) -> int:
    if word in ("", "one"):
        return 1
    found = quantities(f"{word} things")
    return int(float(next(iter(found[0].bare)).removeprefix("n:")))


def _is_money(quantity: Quantity) -> bool:
    return quantity.kind == "amount" and (quantity.unit in MONEY or not quantity.unit)


_KINDS: tuple[tuple[re.Pattern[str], Callable[[Quantity], bool]], ...] = (
    (
        re.compile(r"\b(?:prices?|costs?|amount|total|fee|preise?|betrag|kosten|precio|prix)\b|価格|料金|金額"),
        _is_money,
    ),
    (
        re.compile(r"\b(?:dates?|days?|when|time|deadline|datum|termin|fecha)\b|日付|時間"),
        lambda quantity: quantity.kind in ("date", "clock") or quantity.unit == "time",
    ),
    (
        re.compile(
            r"\b(?:ids?|order (?:number|id)|reference|booking number|bestellnummer|número de pedido)\b|注文番号"
        ),
        lambda quantity: quantity.kind == "id" or (quantity.kind == "amount" and not quantity.unit),
    ),
    (re.compile(r"\b(?:number|how many|quantity|count|anzahl)\b"), lambda quantity: quantity.kind in ("amount", "id")),
)
_COMMON = frozenset(content_words("answer response agent user customer final should text reply assistant"))

RULES: tuple[Rule, ...] = (quoted, from_tools, tongue, length, form, act, asks, states)
