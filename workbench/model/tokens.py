"""JSON text cut into tokens, forgivingly: what is not JSON becomes the token that was meant, and a complaint.

The rule of what is JSON is ADK's reader (pydantic's, which is strict RFC 8259 plus NaN and Infinity). Python's own
reader differs in one point that matters: it takes lone surrogates.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

TokenKind = Literal["{", "}", "[", "]", ",", ":", "string", "number", "word", "end"]

_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r'(?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")'
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-]))"
    r"|(?P<word>(?:true|false|null)(?!\w))"
)
_STRING_STOP = re.compile(r'["\\\x00-\x1f]')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMENT = re.compile(r"//[^\n\r]*|#[^\n\r]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\\n\r]|\\.|'(?!\s*(?:[,:}\]]|$)))*)(?:'|(?=[\n\r]|\Z))", re.MULTILINE)
_BACKQUOTED = re.compile(r"`([^`\n\r]*)`?")
_CURLY_QUOTED = re.compile('[“”„«»]([^“”„«»"\n\r]*)[“”«»"]?')
_TRIPLE_QUOTED = re.compile(r'"""(.*?)(?:"""|\Z)', re.DOTALL)
_NEAR_NUMBER = re.compile(r"[+-]?\.?[0-9][\w.+-]*|[+-](?=\.?\w)[\w.+-]*")
_BARE_WORD = re.compile(r"[^\W\d][\w$.-]*")
_JUNK = re.compile(r"[^\s\w\"'`“”„«»{}\[\],:/#+.-]+|\.{2,}|.", re.DOTALL)
_NEXT_LINE_IS_JSON = re.compile(
    r'\s*(?:\Z|[{}\[\]]|"(?:[^"\\\n]|\\.)*"\s*[:,}\]]|"(?:[^"\\\n]|\\.)*"\s*$)', re.MULTILINE
)
_LINE_END = re.compile(r"[\r\n]")
_LAST_QUOTE = re.compile(r'"(?=[ \t]*(?:[,}\]]|\Z))')

_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_NOT_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_FOREIGN_WORDS = {
    "True": (True, "true"),
    "False": (False, "false"),
    "None": (None, "null"),
    "TRUE": (True, "true"),
    "FALSE": (False, "false"),
    "NULL": (None, "null"),
    "Null": (None, "null"),
    "nil": (None, "null"),
    "undefined": (None, "null"),
    "nan": (float("nan"), "NaN"),
    "inf": (float("inf"), "Infinity"),
}
_CONTROL_NAMES = {"\t": "tab", "\x00": "NUL", "\x1b": "ESC", "\x08": "backspace", "\x0c": "form feed"}
_CONTROL_ESCAPES = {"\t": "\\t", "\x08": "\\b", "\x0c": "\\f", "\n": "\\n", "\r": "\\r"}
MOST_DIGITS = 4300
"""Whole numbers with more are refused by ADK's reader, and by Python."""


@dataclass(frozen=True, slots=True)
class Token:
    """`value` is what a string, number or word stands for; `quoted` tells a text in quotes from a bare word."""

    kind: TokenKind
    start: int
    end: int
    value: Any = None
    quoted: bool = False


Complain = Callable[..., None]
"""Called as complain(offset, message, hint="", severity="error", certain=False); see `open_frames.Flaw`."""


class Lexer:
    """Tokens of `text`, one after the other. Every complaint goes to `complain`."""

    def __init__(self, text: str, complain: Complain) -> None:
        self.text = text
        self.position = 0
        self._complain = complain

    def next(self) -> Token:
        """The next token; kind "end" at the end of the text, again and again."""
        text = self.text
        while True:
            start = _SPACE.match(text, self.position).end()  # type: ignore[union-attr]
            match = _TOKEN.match(text, start)
            # Three quotes begin a Python string: in JSON an empty text is never followed by a quote.
            if match and not (match.group() == '""' and text.startswith('"', start + 2)):
                return self._regular(match)
            if start >= len(text):
                self.position = len(text)
                return Token("end", start, start)
            token = self._irregular(start)
            if token is not None:
                self.position = token.end
                return token

    def colon_follows(self, token: Token) -> bool:
        """Whether a colon stands right after `token`, which makes it a key."""
        return self.text.startswith(":", _SPACE.match(self.text, token.end).end())  # type: ignore[union-attr]

    def end_of_line_text(self, position: int) -> int:
        """Where a text on this line ends: after the next quote that a comma, a bracket or the line's end follows; at
        the line's end if there is none."""
        line_end = _LINE_END.search(self.text, position)
        limit = line_end.start() if line_end else len(self.text)
        quote = _LAST_QUOTE.search(self.text, position, limit)
        return quote.end() if quote else limit

    def _regular(self, match: re.Match[str]) -> Token:
        start, end = match.span()
        self.position = end
        raw = match.group()
        kind = match.lastgroup
        if kind == "string":
            value = raw[1:-1] if "\\" not in raw else json.loads(raw)
            if _SURROGATE.search(value):
                self._complain(start, *lone_surrogate(value), severity="warning")
            return Token("string", start, end, value, quoted=True)
        if kind == "number":
            return Token("number", start, end, self._number(raw, start))
        if kind == "word":
            return Token("word", start, end, _WORDS[raw])
        return Token(raw, start, end)  # type: ignore[arg-type]

    def _number(self, raw: str, start: int) -> int | float:
        if raw.lstrip("-").isdigit():
            if len(raw) <= MOST_DIGITS:
                return int(raw)
            self._complain(
                start, f"a whole number of {len(raw):,} digits: ADK reads at most {MOST_DIGITS:,}", certain=True
            )
        return float(raw)

    def _irregular(self, start: int) -> Token | None:
        """The token that was meant at `start`, where no JSON token begins; None for what is to be skipped."""
        text = self.text
        character = text[start]
        if character == '"':
            return self._triple_quoted(start) if text.startswith('"""', start) else self._broken_string(start)
        if text.startswith("```", start):
            line_end = _LINE_END.search(text, start)
            self._complain(start, "a Markdown fence (```) around the JSON", "Delete the line", certain=True)
            self.position = line_end.start() if line_end else len(text)
            return None
        if character in "'`“”„«»":
            return self._strangely_quoted(start)
        if match := _COMMENT.match(text, start):
            mark = {"/": "//", "#": "#"}[character] if text[start : start + 2] != "/*" else "/* */"
            self._complain(start, f"a comment ({mark}): JSON has none", "Delete it", certain=True)
            self.position = match.end()
            return None
        if match := _NEAR_NUMBER.match(text, start):
            return self._near_number(match)
        if match := _BARE_WORD.match(text, start):
            return self._bare_word(match)
        match = _JUNK.match(text, start)
        assert match is not None  # it matches any character
        self._complain(start, *_junk(match.group()))
        self.position = match.end()
        meant = {"=": ":", ";": ","}.get(match.group())
        return Token(meant, start, match.end()) if meant else None  # type: ignore[arg-type]

    def _triple_quoted(self, start: int) -> Token:
        match = _TRIPLE_QUOTED.match(self.text, start)
        assert match is not None  # it begins with the quotes that were seen
        self._complain(
            start,
            'text in three quotes (""") is Python, not JSON',
            "Use one quote on each side, and \\n for line breaks",
            certain=True,
        )
        return Token("string", start, match.end(), match.group(1), quoted=True)

    def _strangely_quoted(self, start: int) -> Token:
        quote = self.text[start]
        pattern = {"'": _SINGLE_QUOTED, "`": _BACKQUOTED}.get(quote, _CURLY_QUOTED)
        match = pattern.match(self.text, start)
        if match is None:  # a closing typographic quote on its own
            return Token("string", start, start + 1, "", quoted=True)
        name = {"'": "single quotes", "`": "backquotes"}.get(quote, f"typographic quotes ({quote})")
        self._complain(start, f"{name}: JSON wants double quotes", 'Write "…"', certain=True)
        return Token("string", start, match.end(), match.group(1), quoted=True)

    def _near_number(self, match: re.Match[str]) -> Token:
        raw, start = match.group(), match.start()
        if raw == "-Infinity":
            self._complain(start, *_not_a_number(raw), severity="warning")
            return Token("number", start, match.end(), _NOT_NUMBERS[raw])
        self._complain(start, f"`{raw[:40]}` is not a JSON number", _number_hint(raw))
        return Token("number", start, match.end(), None)

    def _bare_word(self, match: re.Match[str]) -> Token:
        raw, start = match.group(), match.start()
        token = Token("word", start, match.end(), raw)
        if self.colon_follows(token):
            self._complain(start, f"the key `{raw[:60]}` is not in quotes", f'Write "{raw[:60]}"', certain=True)
            return token
        if raw in _NOT_NUMBERS:
            self._complain(start, *_not_a_number(raw), severity="warning")
            return Token("number", start, match.end(), _NOT_NUMBERS[raw])
        if raw in _FOREIGN_WORDS:
            value, meant = _FOREIGN_WORDS[raw]
            python = " (it is Python)" if raw in ("True", "False", "None") else ""
            self._complain(start, f"`{raw}` is not JSON{python}", f"Write {meant}", certain=True)
            return Token("word", start, match.end(), value)
        self._complain(start, f"`{raw[:60]}` is neither true, false, null nor a number", "Text needs double quotes")
        return token

    def _broken_string(self, start: int) -> Token:
        """A string that begins well and holds something that JSON forbids."""
        text, position, complained = self.text, start + 1, False
        while True:
            stop = _STRING_STOP.search(text, position)
            if stop is None:
                self._complain(start, "this text is never closed: the file ends inside it", 'A " is missing')
                return self._string(start, len(text), closed=False)
            position, character = stop.end(), stop.group()
            if character == '"':
                return self._string(start, position)
            if character == "\\":
                escape = _ESCAPE.match(text, position - 1)
                if escape is None:
                    self._complain(position - 1, *_bad_escape(text[position - 1 : position + 5]), certain=True)
                position = escape.end() if escape else min(position + 1, len(text))
            elif character in "\r\n" and _NEXT_LINE_IS_JSON.match(text, position):
                self._complain(start, "this text is never closed: the line ends inside it", 'A " is missing')
                return self._string(start, position - 1, closed=False)
            elif not complained:
                complained = True
                self._complain(position - 1, *_control_character(character), certain=True)

    def _string(self, start: int, end: int, *, closed: bool = True) -> Token:
        raw = self.text[start + 1 : end - 1] if closed else self.text[start + 1 : end]
        if not closed:
            # The comma that ended the line was meant for the list or object.
            kept = raw.rstrip()
            kept = kept[:-1] if kept.endswith(",") else kept
            end = start + 1 + len(kept)
            raw = kept
        return Token("string", start, end, _unescape(raw), quoted=True)


def lone_surrogate(value: str) -> tuple[str, str]:
    """Message and hint for a text that holds half of a surrogate pair."""
    match = _SURROGATE.search(value)
    code = f"\\u{ord(match.group()):04x}" if match else ""
    return f"half a character ({code}, a lone surrogate): ADK cannot read this file", "Replace it"


def has_lone_surrogate(value: str) -> bool:
    """Whether a text holds half of a surrogate pair."""
    return _SURROGATE.search(value) is not None


def _unescape(raw: str) -> str:
    def one(match: re.Match[str]) -> str:
        value: str = json.loads(f'"{match.group()}"')
        return value

    return re.sub(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]', one, raw)


def _not_a_number(raw: str) -> tuple[str, str]:
    return f"{raw} is not JSON, though ADK reads it", "Other programs will refuse the file"


def _number_hint(raw: str) -> str:
    if re.fullmatch(r"[+-]?0[0-9]+(\.[0-9]+)?", raw):
        return "A number does not begin with 0"
    if raw.startswith("+"):
        return "A number does not begin with +"
    if re.fullmatch(r"-?\.[0-9]+|-?[0-9]+\.", raw):
        return "There must be a digit on both sides of the dot"
    if re.fullmatch(r"-?[0-9][0-9_]*", raw):
        return "Write the digits without _"
    if re.fullmatch(r"-?0[xXoObB]\w+", raw):
        return "Only decimal numbers are allowed"
    return "If it is text, it needs double quotes"


def _bad_escape(raw: str) -> tuple[str, str]:
    escaped = raw[1:2]
    if escaped in ("\n", "\r"):
        return "a backslash at the end of the line: JSON has no such thing", "Write \\n for a line break"
    if escaped == "u":
        return f"`{raw}` is not an escape: \\u wants four hexadecimal digits", ""
    if escaped == "'":
        return "`\\'` is not a JSON escape", "A single quote needs no backslash"
    return f"`\\{escaped}` is not a JSON escape", "A backslash is written \\\\"


def _control_character(character: str) -> tuple[str, str]:
    if character in "\r\n":
        return "a line break inside text", "Write \\n"
    name = _CONTROL_NAMES.get(character, f"control character U+{ord(character):04X}")
    escape = _CONTROL_ESCAPES.get(character, "\\u" + f"{ord(character):04x}")
    return f"a raw {name} inside text", f"Write {escape}"


def _junk(raw: str) -> tuple[str, str]:
    character = raw[0]
    if raw.startswith(("..", "…")):
        return (
            f"`{raw[:3]}` stands for something left out: JSON has no such thing",
            "Delete it or write what it stands for",
        )
    if character == "=":
        return "`=` where JSON wants a colon", ""
    if character == ";":
        return "`;` where JSON wants a comma or nothing", ""
    if character == "\ufeff":
        return "a byte-order mark in the middle of the file", "Delete it: it cannot be seen in an editor"
    name = unicodedata.name(character, "").lower()
    shown = f"`{raw[:20]}`" if raw.isprintable() else f"the character U+{ord(character):04X}"
    return f"{shown}{f' ({name})' if name and not raw[:20].isascii() else ''} has no place in JSON", "Delete it"
