"""Which language a text is in, as far as its script and its small words tell."""

import re

_SCRIPTS = (
    ("ja", re.compile(r"[\u3041-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7a3]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
"""In this order: Japanese has Chinese characters too, and is known by its kana."""

SMALL_WORDS = {
    "en": "a an the is are was were be been am i you he she it we they my your his her its our their this that these "
    "those of to in on at by for from with as and or but if so do does did done has have had will would can could "
    "should may might must there here what which who when where how why me him us them than then too very just also "
    "please yes no not about into out up some any each own more most other only s t ll re ve d m get got let",
    "de": "der die das den dem des ein eine einen einem einer eines ist sind war waren sein wird werden wurde wurden "
    "ich du er sie es wir ihr ihre ihren ihrem ihnen ihn mir mich uns mein meine meiner von zu zum zur in im an am auf "
    "für mit aus bei nach um und oder aber wenn so hat haben hatte kann können soll muss darf mag da hier was wer wo "
    "wie wann als dann auch nur sehr bitte ja nein nicht noch schon sich dass innerhalb",
    "es": "el la los las un una unos unas es son está están fue ser su sus mi mis tu de del a al en por para con y o "
    "pero si que qué se lo le les ha han he hay como cuándo dónde cuál muy más ya sí no nos me te este esta hoy usted",
    "fr": "le la les un une des du de est sont était être à au aux en dans par pour avec sur et ou mais si que qui se "
    "ce cette ces il elle nous vous ils je tu mon ma mes votre vos son sa ses leur y a ont ai plus très oui non ne pas "
    "quel quelle où quand comment faut l d c s n qu",
    "pt": "o a os as um uma uns é são está estão foi ser seu sua seus meu minha de do da dos das em no na nos nas por "
    "para com e ou mas se que lhe eu você nós há como quando onde qual muito mais já sim não este esta",
    "it": "il lo la i gli le un una è sono era essere suo sua mio di del della dei a al in nel per con e o ma se che "
    "chi ha hanno ho c come quando dove quale molto più già sì no non questo questa",
    "nl": "de het een is zijn was van naar in op aan bij voor met uit en of maar als ik je hij zij wij uw mijn dat die "
    "er wat wie waar hoe wanneer niet geen ja nee ook nog heeft hebben kan wordt",
    "ru": "и в во на по с со к у о от до за из не но да нет это что как где когда кто мы вы он она они я ты ваш мой "
    "будет был была было есть для или же",
}
"""Words that say little by themselves, by language."""

_PREPOSITIONS = """
on in at by for to from of with since until
am an auf bei für mit von zu im aus
en a de por para con desde hasta
à dans pour avec
em no na com
di da per su
"""
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
SETS = {language: frozenset(words.split()) for language, words in SMALL_WORDS.items()}
_LETTERS = re.compile(r"[^\W\d_]+")
_ENOUGH = 4000


def language(text: str) -> str:
    """ "ja", "de", … or "" where nothing tells. The first few thousand characters decide."""
    text = text[:_ENOUGH]
    letters = sum(1 for character in text if character.isalpha())
    for name, script in _SCRIPTS:
        found = len(script.findall(text))
        if found and found * 5 >= letters:
            return name
    words = _LETTERS.findall(text.lower())
    counts = {name: sum(1 for word in words if word in small) for name, small in SETS.items()}
    best = max(counts, key=lambda name: (counts[name], name == "en"))
    return best if counts[best] else ""
