"""Sentences that claim nothing: greetings, thanks, apologies, questions, offers, announcements, wishes."""

import re

from workbench.judge.heuristic.quantities import quantities, without_quantities
from workbench.judge.heuristic.words import content_words, plain

_PHRASES = (
    r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|dear \w+|greetings)\b",
    r"^\W*welcome\b",
    r"\b(?:thanks?(?: you)?(?: (?:so|very) much)?|many thanks|you're welcome|my pleasure)\b",
    r"\b(?:no problem|of course|certainly|sure)\b",
    r"\b(?:i am|i'm|we are|we're) (?:(?:so|very|really|truly) )?(?:sorry|afraid|happy|glad|delighted|here)"
    r"(?: (?:about|for|to)(?: (?:that|this|hear that|help|assist|the \w+))?(?: you)?)?\b",
    r"\b(?:sorry|my apologies|apologies|i apologi[sz]e|we apologi[sz]e)"
    r"(?: (?:about|for) (?:that|this|the \w+|any \w+))?\b",
    r"\b(?:happy|glad) to help\b",
    r"\b(?:have a (?:\w+ )?(?:day|evening|trip|stay|weekend|time))\b",
    r"\b(?:enjoy (?:your|the)?.*|take care|good ?bye|bye|see you.*)",
    r"\b(?:please )?(?:let me know|feel free|don't hesitate|do not hesitate|just ask)\b.*",
    r"\b(?:is there )?anything else\b.*",
    r"\bi hope (?:this|that) helps\b|\bgood luck\b|\bone moment\b|\bplease wait\b"
    r"|\b(?:i|we|\w+) will (?:look|check|see|be with you|get back to you|take care of (?:it|that))\b",
    r"\bguten (?:tag|morgen|abend)|\bhallo\b|\bgrüezi\b|\bvielen dank\b|\bdanke(?: schön)?\b|\bgern(?:e)?\b"
    r"|\bes tut mir (?:sehr )?leid\b"
    r"|\bentschuldigung\b|\bauf wiedersehen\b|\bbitte (?:melden|sagen) sie\b.*|\b(?:einen )?schönen (?:tag|abend)\b.*",
    r"\b(?:hola|buen(?:os|as) (?:días|tardes|noches)|(?:muchas )?gracias|lo siento(?: mucho)?|de nada)\b"
    r"|\b(?:adiós|buen viaje)\b",
    r"\b(?:bonjour|bonsoir|merci(?: beaucoup)?|(?:je suis )?désolée?|de rien)\b"
    r"|\b(?:au revoir|bon(?:ne)? (?:voyage|journée|soirée))\b",
    r"\b(?:olá|bom dia|boa (?:tarde|noite|viagem)|obrigad[oa]|desculpe|lamento)\b"
    r"|\b(?:ciao|buongiorno|buonasera|grazie|prego)\b",
    r"здравствуйте|добрый день|спасибо|извините|до свидания",
    r"こんにちは|こんばんは|おはようございます|いらっしゃいませ|(?:お問い?合わせ)?(?:いただき)?(?:誠に)?ありがとうございま(?:す|した)"
    r"|申し訳(?:あり|ござい)ません(?:でした)?|すみません|よろしくお願い(?:いた)?します|かしこまりました|承知(?:いた)?しました",
    r"您好|你好|(?:感谢|谢谢)(?:您|你)?(?:的\w{0,6})?|不客气|抱歉|对不起|再见|祝您?\w{0,8}",
    r"안녕하세요|감사합니다|죄송합니다|고맙습니다",
)
_COURTESY = re.compile("|".join(_PHRASES))
_ANNOUNCEMENT = re.compile(
    r"\W*(?:let me|i will|i'll|i am going to|i'm going to|we will (?:look|check)|would you|shall i|do you|can i|may i|"
    r"could you|please|ich werde|lassen sie mich|voy a|je vais|vou)\b"
)
_QUESTION = re.compile(r"[?？؟][\s\"'”’)]*$|ますか。?$|でしょうか。?$|ですか。?$|吗。?$|까요?\.?$")
_LONGEST = 400
"""A longer sentence is no courtesy."""
_REST = 1
"""So many content words may be left of a courtesy: a name, an adverb."""


def claims_nothing(sentence: str) -> str:
    """Why a sentence claims nothing, "" for one that does."""
    text = plain(sentence)
    if len(text) > _LONGEST:
        return ""
    if _QUESTION.search(text):
        return "a question"
    if _ANNOUNCEMENT.match(text):
        return "an offer, a request or an announcement"
    rest = _COURTESY.sub(" ", text)
    if quantities(rest):
        return ""
    words = len(content_words(without_quantities(rest)))
    if words == 0:
        return "nothing in it can be looked up"
    return "a courtesy" if rest != text and words <= _REST else ""
