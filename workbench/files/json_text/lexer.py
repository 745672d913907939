"""A tolerant lexer for JSON text: invalid text becomes the token that was probably meant, plus a complaint.

Valid means what ADK's reader accepts (pydantic's: strict RFC 8259 plus NaN and Infinity). Python's own reader differs
in one point that matters: it accepts lone surrogates.
"""

import json
import re
from typing import Any

from workbench.files.json_text.tokens import Complain, Token, has_lone_surrogate, lone_surrogate, skip_space

_TOKEN = re.compile(
    r'(?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")'
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-]))"
    r"|(?P<word>(?:true|false|null)(?!\w))"
)

_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
MOST_DIGITS = 4300
"""ADK's reader and Python refuse integers with more digits."""


class Lexer:
    """The tokens of `text`, one after the other. Every complaint goes to `complain`."""

    def __init__(self, text: str, complain: Complain) -> None:
        self.text = text
        self.position = 0
        self._complain = complain

    def next(self) -> Token:
        """Return the next token. At the end of the text, return kind "end" again and again."""
        text = self.text
        while True:
            start = skip_space(text, self.position)
            match = _TOKEN.match(text, start)
            # Three quotes begin a Python string. In JSON, an empty text is never followed by a quote.
            if match and not (match.group() == '""' and text.startswith('"', start + 2)):
                return self._regular(match)
            if start >= len(text):
                self.position = len(text)
                return Token("end", start, start)
            from workbench.files.json_text.near_json import (
                near_token,  # imported late: its patterns take 20 ms to compile
            )

            token, self.position = near_token(text, start, self._complain)
            if token is not None:
                return token

    def colon_follows(self, token: Token) -> bool:
        """Return whether a colon comes right after `token`, which makes it a key."""
        return self.text.startswith(":", skip_space(self.text, token.end))

    def _regular(self, match: re.Match[str]) -> Token:
        start, end = match.span()
        self.position = end
        raw = match.group()
        kind = match.lastgroup
        if kind == "string":
            value = raw[1:-1] if "\\" not in raw else json.loads(raw)
            if has_lone_surrogate(value):
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
            self._complain(start, f"an integer of {len(raw):,} digits: ADK reads at most {MOST_DIGITS:,}", certain=True)
        return float(raw)
