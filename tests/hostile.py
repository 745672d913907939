"""Strings that have broken terminals, markup parsers and encoders: fed through every widget and all plain output."""

HOSTILE: tuple[str, ...] = (
    "[/oops]",
    "[@click=app.quit]click[/]",
    "[bold red]not markup[/bold red] [link=https://example.com]x[/link]",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;owned title\x07",
    "\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b[2J\x1b[H\x1b[?1049l",
    "\x9b31mC1\x9d0;title\x9c",
    "user\u202egnp.exe",
    "\u2066isolate\u2069 \u200fmark",
    "lone \ud800 surrogate \udfff",
    "tab\there\r\nand\rthere\x0b\x0c\x85\u2028\u2029end",
    "nul\x00bell\x07back\x08del\x7f",
    "\ufeffBOM and \U000e0041 tag",
    "日本語の長い名前がここにあります" * 5,
    "ภาษาไทย العربية עברית 한국어",
    "👩‍👩‍👧‍👦 🇵🇹 é ñ̃",
    "x" * 100_000,
    "word " * 20_000,
    "a\n" * 5_000,
    "",
    " ",
    "\n",
    "${HOME} %s {0} $(id) `id`",
    "<script>alert(1)</script>&amp;]]>",
)

# What must never reach a terminal from a foreign string.
FORBIDDEN = frozenset(
    [chr(code) for code in range(0x20) if chr(code) != "\n"]
    + [chr(code) for code in range(0x7F, 0xA0)]
    + list("\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
)


def leaks(text: str) -> set[str]:
    """Return the characters of `text` that could control a terminal or cannot be written to one."""
    if text.isprintable():  # as nearly all lines are, and none of those characters is
        return set()
    return {character for character in text if character in FORBIDDEN or 0xD800 <= ord(character) <= 0xDFFF}
