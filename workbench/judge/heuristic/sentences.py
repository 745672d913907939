"""A text cut into sentences: prose in many scripts, lists, headings, tables, code."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"[ \t]{0,40}(```|~~~)")
_ITEM = re.compile(r"[ \t]{0,40}(?:[-*+•‣·▪◦]|\d{1,3}[.)]|\(?[a-z]\))\s+(?=\S)|[ \t]{0,40}(?:[・●○■])\s*")
_HEADING = re.compile(r"[ \t]{0,40}#{1,6}\s+")
_QUOTED = re.compile(r"[ \t]{0,40}>\s?")
_RULE_SIGNS = frozenset("-*_=|: \t")
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s|$)|[。！？｡]+[」』”’）)\]]*|[।؟۔]+(?=\s|$)")
_OPENERS = "「『（"
_CLOSERS = "」』）"
_BEFORE = re.compile(r"(\S+)$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+$")
_NOT_AN_END = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "sr",
        "jr",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "cf",
        "fig",
        "no",
        "nr",
        "art",
        "vol",
        "ed",
        "al",
        "approx",
        "ca",
        "bzw",
        "usw",
        "evtl",
        "inkl",
        "ggf",
        "vgl",
        "zzgl",
        "tel",
        "str",
        "hr",
        "fr",
        "dipl",
        "ing",
        "bspw",
        "sog",
        "mind",
        "max",
        "min",
        "z.b",
        "d.h",
        "u.a",
        "u.s.w",
        "s.o",
        "p.ej",
        "sra",
        "dra",
        "srta",
        "núm",
        "pág",
        "av",
        "ud",
        "uds",
        "vd",
        "p.ex",
        "ex",
        "m",
        "mm",
        "mme",
        "mlle",
        "env",
        "av",
        "apr",
        "feb",
        "jan",
        "mar",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "okt",
        "nov",
        "dec",
        "dez",
        "inc",
        "ltd",
        "co",
        "corp",
        "dept",
        "est",
        "gen",
        "gov",
        "lt",
        "col",
        "sgt",
        "rep",
        "sen",
        "rev",
        "hon",
        "abb",
        "kap",
        "abs",
    ]
)
_NEVER_AN_END = frozenset(
    ["mr", "mrs", "ms", "dr", "prof", "e.g", "i.e", "cf", "fig", "z.b", "d.h", "vgl", "bzw", "sra", "dra", "mme"]
)
_AFTER = re.compile(r"\s*([\"'“‘«(\[*_]*)(\S)")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each a stretch of it (without list marks and heading signs), none blank. A block of code
    is one; so are a row of a table and an item of a list that has no full stop. Takes time in proportion to length."""
    found: list[str] = []
    for kind, block in _blocks(text):
        if kind == "whole":
            found.append(block)
        else:
            found.extend(_split(block))
    return [stripped for sentence in found if (stripped := sentence.strip())]


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """("whole" | "prose", text) in order: lines that belong together are one block of prose."""
    prose: list[str] = []
    code: list[str] | None = None
    for line in map(str.rstrip, text.splitlines()):
        if _FENCE.match(line):
            if code is not None:
                yield "whole", "\n".join(code)
                code = None
                continue
            yield "prose", "\n".join(prose)
            prose, code = [], []
        elif code is not None:
            code.append(line)
        elif not line.strip() or _is_rule(line):
            yield "prose", "\n".join(prose)
            prose = []
        elif line.lstrip().startswith("|"):
            yield "prose", "\n".join(prose)
            prose = []
            yield "whole", line
        else:
            marked = _marked(line)
            if marked is not None or _ends(prose):
                yield "prose", "\n".join(prose)
                prose = []
            prose.append(line if marked is None else marked)
            if _HEADING.match(line):
                yield "prose", "\n".join(prose)
                prose = []
    yield "prose", "\n".join(prose)
    yield "whole", "\n".join(code or [])


def _is_rule(line: str) -> bool:
    """A rule across the page, or the line under the head of a table."""
    return _RULE_SIGNS.issuperset(line) and any(sign * 2 in line for sign in "-*_=")


def _marked(line: str) -> str | None:
    """What follows the mark of an item, heading or quotation; None for a line without."""
    for mark in (_HEADING, _ITEM, _QUOTED):
        match = mark.match(line)
        if match:
            return line[match.end() :]
    return None


def _ends(prose: list[str]) -> bool:
    """Whether the block so far cannot go on in the next line."""
    return bool(prose) and prose[-1].rstrip().endswith((":", "："))


def _split(block: str) -> Iterator[str]:
    start = 0
    depth = at = 0
    for match in _END.finditer(block):
        for character in block[at : match.start()]:
            depth += (character in _OPENERS) - (character in _CLOSERS)
        at = match.start()
        if depth > 0 and match.group()[0] in "。！？｡":
            closed = sum(character in _CLOSERS for character in match.group())
            if closed < depth or not _sentence_follows(block, match.end()):
                continue
        if match.group()[0] in ".…" and not _is_end(block, start, match):
            continue
        yield block[start : match.end()]
        start = match.end()
    yield block[start:]


def _sentence_follows(block: str, end: int) -> bool:
    """After a closing quotation mark: a new sentence, not the particle of the one around it."""
    after = block[end : end + 1]
    return not after or after.isspace() or after in _OPENERS


def _is_end(block: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop ends a sentence rather than an abbreviation, an initial or an ordinal number."""
    before = _BEFORE.search(block[max(start, match.start() - 30) : match.start()])
    word = before.group(1).strip("\"'“‘«([*_¿¡").casefold() if before else ""
    after = _AFTER.match(block[match.end() : match.end() + 12])
    following = after.group(2) if after else ""
    if not following:
        return True
    if match.group().startswith(("...", "…")):
        return following.isupper()
    if following.islower() and not _camel(block, match.end()):
        return word not in _NOT_AN_END and not _INITIALS.search(word + ".") and bool(after and after.group(1))
    if word in _NEVER_AN_END or (
        word in _NOT_AN_END
        and (following.isdigit() or following.isupper())
        and word not in {"etc", "usw", "inc", "ltd", "co", "corp"}
    ):
        return False
    if re.fullmatch(r"[^\W\d_]", word) and word not in "iy":
        return False
    if word in ("a.m", "p.m", "am", "pm", "u.s", "u.k", "e.u", "u.n"):
        return not word.startswith(("u.", "e.")) and following.isupper()
    if re.fullmatch(r"\d{1,2}", word):
        return not _ordinal(block, match)
    return True


def _camel(block: str, end: int) -> bool:
    """iPhones, eBay, and "e.g." at the beginning of a sentence."""
    return bool(re.match(r"\s+(?:[a-z][A-Z]|e\.g\.|i\.e\.)", block[end : end + 8]))


_MONTH = re.compile(r"\s*(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)", re.IGNORECASE)


def _ordinal(block: str, match: re.Match[str]) -> bool:
    """ "12. März", and a number that stands alone before a stop ("am 3. Tag")."""
    before = block[max(0, match.start() - 12) : match.start()].casefold()
    return bool(_MONTH.match(block[match.end() : match.end() + 8])) or bool(
        re.search(r"\b(?:am|vom|bis|zum|den|der|die|das|dem|im)\s+\d{1,2}$", before)
    )
