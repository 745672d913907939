"""Text that looks like JSON but is not: comments, other quotes, Python literals, broken strings and numbers.

Each becomes the token that was probably meant, or is skipped, and gets a complaint. The patterns take a while to
compile and valid files never need them, so `scanner` imports this module only for text that is not plain JSON.
"""

import json
import re
import unicodedata

from workbench.files.json_text.json_nodes import Complain, Token, skip_space

_STRING_STOP = re.compile(r'["\\\x00-\x1f]')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_COMMENT = re.compile(r"//[^\n\r]*|#[^\n\r]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\\n\r]|\\.|'(?!\s*(?:[,:}\]]|$)))*)(?:'|\\?(?=[\n\r]|\Z))", re.MULTILINE)
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


class NearJson:
    """Reader of a text that is not plain JSON. Every complaint goes to `complain`."""

    def __init__(self, text: str, complain: Complain) -> None:
        self._text = text
        self._complain = complain

    def read(self, start: int) -> tuple[Token | None, int]:
        """Return the token that was probably meant at `start`, and the offset to continue from.

        No JSON token begins at `start`. The token is None for text to be skipped.
        """
        text = self._text
        character = text[start]
        token: Token | None
        if text.startswith("```", start):
            self._complain(start, "a Markdown fence (```) around the JSON", "Delete the line", certain=True)
            line_end = _LINE_END.search(text, start)
            return None, line_end.start() if line_end else len(text)
        if match := _COMMENT.match(text, start):
            mark = "/* */" if text.startswith("/*", start) else "//" if character == "/" else "#"
            self._complain(start, f"a comment ({mark}): JSON does not allow comments", "Delete it", certain=True)
            return None, match.end()
        if character == '"':
            token = self._triple_quoted(start) if text.startswith('"""', start) else self._broken_string(start)
        elif character in "'`“”„«»":
            token = self._strangely_quoted(start)
        elif match := _NEAR_NUMBER.match(text, start):
            token = self._near_number(match)
        elif match := _BARE_WORD.match(text, start):
            token = self._bare_word(match)
        else:
            return self._junk(start)
        return token, token.end

    def _junk(self, start: int) -> tuple[Token | None, int]:
        match = _JUNK.match(self._text, start)
        assert match is not None  # it matches any character
        self._complain(start, *_explain_junk(match.group()))
        end = match.end()
        if match.group() == "=":
            return Token(":", start, end), end
        return (Token(",", start, end) if match.group() == ";" else None), end

    def _triple_quoted(self, start: int) -> Token:
        match = _TRIPLE_QUOTED.match(self._text, start)
        assert match is not None  # it begins with the quotes that were seen
        hint = "Use one quote on each side, and \\n for line breaks"
        self._complain(start, 'text in three quotes (""") is Python, not JSON', hint, certain=True)
        return Token("string", start, match.end(), match.group(1), quoted=True)

    def _strangely_quoted(self, start: int) -> Token:
        quote = self._text[start]
        pattern = {"'": _SINGLE_QUOTED, "`": _BACKQUOTED}.get(quote, _CURLY_QUOTED)
        match = pattern.match(self._text, start)
        assert match is not None  # it also matches a quote alone
        name = {"'": "single quotes", "`": "backquotes"}.get(quote, f"typographic quotes ({quote})")
        self._complain(start, f"{name}: JSON needs double quotes", 'Write "…"', certain=True)
        return Token("string", start, match.end(), match.group(1), quoted=True)

    def _near_number(self, match: re.Match[str]) -> Token:
        raw, start = match.group(), match.start()
        if raw == "-Infinity":
            self._complain(start, *_not_a_number(raw), severity="warning")
            return Token("number", start, match.end(), _NOT_NUMBERS[raw])
        self._complain(start, f"`{raw[:40]}` is not a JSON number", _number_hint(raw))
        return Token("number", start, match.end(), None)

    def _bare_word(self, match: re.Match[str]) -> Token:
        raw, start, end = match.group(), match.start(), match.end()
        if self._text.startswith(":", skip_space(self._text, end)):
            self._complain(start, f"the key `{raw[:60]}` is not in quotes", f'Write "{raw[:60]}"', certain=True)
            return Token("word", start, end, raw)
        if raw in _NOT_NUMBERS:
            self._complain(start, *_not_a_number(raw), severity="warning")
            return Token("number", start, end, _NOT_NUMBERS[raw])
        if raw in _FOREIGN_WORDS:
            value, meant = _FOREIGN_WORDS[raw]
            python = " (it is Python)" if raw in ("True", "False", "None") else ""
            self._complain(start, f"`{raw}` is not JSON{python}", f"Write {meant}", certain=True)
            return Token("word", start, end, value)
        self._complain(start, f"`{raw[:60]}` is neither true, false, null nor a number", "Text needs double quotes")
        return Token("word", start, end, raw)

    def _broken_string(self, start: int) -> Token:
        """Read a string that begins correctly but has no end or contains something that JSON forbids."""
        text, position, complained = self._text, start + 1, False
        while True:
            stop = _STRING_STOP.search(text, position)
            if stop is None:
                return self._unclosed(start, len(text), "file")
            position, character = stop.end(), stop.group()
            if character == '"':
                return Token("string", start, position, _unescape(text[start + 1 : position - 1]), quoted=True)
            if character == "\\":
                escape = _ESCAPE.match(text, position - 1)
                if escape is None:
                    self._complain(position - 1, *_bad_escape(text[position - 1 : position + 5]), certain=True)
                position = escape.end() if escape else min(position + 1, len(text))
            elif character in "\r\n" and _NEXT_LINE_IS_JSON.match(text, position):
                return self._unclosed(start, position - 1, "line")
            elif not complained:
                complained = True
                self._complain(position - 1, *_control_character(character), certain=True)

    def _unclosed(self, start: int, end: int, inside: str) -> Token:
        message = f"this text is never closed: the {inside} ends inside it"
        self._complain(start, message, 'A " is missing', last=True)
        return Token("string", start, end, self._text[start + 1 : end], quoted=True)


def _unescape(raw: str) -> str:
    def one(match: re.Match[str]) -> str:
        value: str = json.loads(f'"{match.group()}"')
        return value

    return re.sub(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]', one, raw)


def _not_a_number(raw: str) -> tuple[str, str]:
    return f"{raw} is not valid JSON, but ADK accepts it", "Other programs will reject the file"


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
        return "a backslash at the end of the line is not valid JSON", "Write \\n for a line break"
    if escaped == "u":
        return f"`{raw}` is not an escape: \\u needs four hexadecimal digits", ""
    if escaped == "'":
        return "`\\'` is not a JSON escape", "A single quote needs no backslash"
    return f"`\\{escaped}` is not a JSON escape", "A backslash is written \\\\"


def _control_character(character: str) -> tuple[str, str]:
    if character in "\r\n":
        return "a line break inside text", "Write \\n"
    name = _CONTROL_NAMES.get(character, f"control character U+{ord(character):04X}")
    escape = _CONTROL_ESCAPES.get(character, "\\u" + f"{ord(character):04x}")
    return f"a raw {name} inside text", f"Write {escape}"


def _explain_junk(raw: str) -> tuple[str, str]:
    character = raw[0]
    if raw.startswith(("..", "…")):
        return f"`{raw[:3]}` is a placeholder, not JSON", "Delete it or replace it with the real values"
    if character == "=":
        return "`=` where JSON needs a colon", ""
    if character == ";":
        return "`;` where JSON needs a comma or nothing", ""
    if character == "\ufeff":
        return "a byte-order mark in the middle of the file", "Delete it; most editors do not show it"
    name = unicodedata.name(character, "").lower()
    shown = f"`{raw[:20]}`" if raw.isprintable() else f"the character U+{ord(character):04X}"
    return f"{shown}{f' ({name})' if name and not raw[:20].isascii() else ''} is not allowed in JSON", "Delete it"
