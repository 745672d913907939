"""Secrets of an environment, every form in which a text may contain them, and their removal from messages.

Secrets are:

- the value of a variable whose name says so (`is_secret_name`), if it has eight or more characters, and each long line
  of it
- long texts inside such a value if it is JSON, such as a service account's key
- passwords inside URLs, in any variable

A text may contain a secret unchanged, as `repr` or JSON write it, quoted for a URL or for HTML, in base64, base32,
base85 (also Ascii85), in hexadecimal digits, in lower or upper case, or cut into words, as reasons of criteria quote
them. A secret in compressed or encrypted data is not found.

The message of an exception may quote the request, an address may contain `key=…`, and a server may repeat the request
in its reply.
"""

import base64
import functools
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from workbench.files.settings import Settings, read_settings

REPLACED = "[secret "
"""The start of each placeholder for a secret."""
_IN_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")
_WORDS_OF_ADDRESSES = frozenset(("DSN", "WEBHOOK"))
"""Words of names whose values are secret although, or because, they are addresses."""
_WORDS_OF_NAMES = frozenset(("PASS", "PWD", "AUTH", "PAT", "COOKIE")) | _WORDS_OF_ADDRESSES
_WORKING_DIRECTORY = "PWD"
_SHORTEST = 8
_LONG = 16
"""Minimum length of a text that is secret because of its place: inside a secret variable's JSON, or a line of its
value.
"""
URL_PASSWORD = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/@:\"'\\]{0,200}:)([^\s/@\"'\\]{1,400})(?=@)")
_COMMON = frozenset(("password", "passwort", "postgres", "postgresql", "username", "changeme", "localhost"))
"""Passwords in URLs that are also common words. Only the URL itself is changed."""
_ADDRESSES = ("http://", "https://")
_WORD = re.compile(r"[^\W_]+")
_HEX = re.compile(r"%[0-9a-fA-F]{2}")
_MOST_JSON = 100_000
_NESTED = 3
"""Levels of strings inside strings: a tool may return JSON in JSON, and a judge's question quotes it once more."""
_GROUP = 4
"""Bytes that base85 encodes together."""
_PIECE = 4
"""Minimum number of a secret's first characters that are recognised at the end of a cut text."""
_WRAPPED = (64, 76)
"""Line lengths of base64 in PEM and in MIME."""


def is_secret_name(name: str) -> bool:
    """Return whether the name of a variable, or a key in JSON, says that its value is secret.

    Such a name contains a word such as KEY or TOKEN, or is in the user's settings (`[secrets] names`).
    """
    upper = name.upper()
    if _IN_NAMES.search(upper) or upper in {own.upper() for own in _settings().secret_names}:
        return True
    return name != _WORKING_DIRECTORY and not _WORDS_OF_NAMES.isdisjoint(upper.split("_"))


@functools.cache
def _settings() -> Settings:
    """Return the user's settings, read once: a run must treat all texts in the same way."""
    return read_settings()


def named_secrets(values: Mapping[str, str]) -> dict[str, str]:
    """Map each secret to the name of its variable."""
    found: dict[str, str] = {}
    for name, value in values.items():
        for secret in _secrets_in(name, value):
            found.setdefault(secret, name)
    return found


class SecretForms:
    """All forms of some secrets, and their replacement. `named` maps each secret to its name."""

    def __init__(self, named: Mapping[str, str]) -> None:
        forms = {form: name for secret, name in named.items() for form in forms_of(secret)}
        # The longest first, so that a secret that contains another one is replaced as a whole.
        self._plain = sorted(forms.items(), key=lambda item: -len(item[0]))
        quoted = {form: name for secret, name in named.items() for form in quoted_forms(secret)}
        self._quoted = sorted(quoted.items(), key=lambda item: -len(item[0]))
        self._values = sorted(named.items(), key=lambda item: -len(item[0]))

    @property
    def texts(self) -> list[str]:
        """All forms, with the escapes of URLs in upper and lower case."""
        quoted = [form for form, _ in self._quoted]
        lowered = (_HEX.sub(lambda match: match.group().lower(), form) for form in quoted)
        return [*(form for form, _ in self._plain), *quoted, *lowered]

    def replace(self, text: str) -> str:
        """Return `text` with each secret replaced by `[secret NAME]`, in time linear in its length.

        If the text was cut inside a secret ("…"), that piece of the secret is replaced, too.
        """
        for form, name in self._plain:
            if form in text:
                text = text.replace(form, f"[secret {name}]")
        if "%" in text or "+" in text:
            text = self._replace_quoted(text)
        if "://" in text:
            text = URL_PASSWORD.sub(r"\1[secret password]", text)
        whole = text.removesuffix("…")
        if whole != text:
            for value, name in self._values:
                for length in range(len(value) - 1, _PIECE - 1, -1):
                    if whole.endswith(value[:length]):
                        return f"{whole[:-length]}[secret {name}]…"
        return text

    def _replace_quoted(self, text: str) -> str:
        same = with_capitals(text)
        for form, name in self._quoted:
            if form not in same:
                continue
            pieces, reached = [], 0
            while (at := same.find(form, reached)) >= 0:
                pieces += [text[reached:at], f"[secret {name}]"]
                reached = at + len(form)
            text = "".join([*pieces, text[reached:]])
            same = with_capitals(text)
        return text


def with_capitals(text: str) -> str:
    """Return a text of the same length with the escapes of URLs in upper case: `%2F` for `%2f`."""
    return _HEX.sub(lambda match: match.group().upper(), text)


def forms_of(secret: str) -> set[str]:
    """Return the spellings of a secret outside URLs.

    Spellings are plain text (also in lower or upper case), its long words, HTML, strings of Python and JSON, JSON
    inside JSON, base64 (also of such strings), base32, base85 and hexadecimal digits.
    """
    forms = {secret, html.escape(secret), html.escape(secret, quote=False), *_words(secret)}
    if len(secret) >= _LONG or not secret.isalpha():
        # A short secret of letters only may be an ordinary word, such as a part of its variable's name.
        forms |= {secret.lower(), secret.upper()}
    for _ in range(_NESTED):
        forms |= {written for form in forms for written in _written(form)}
    encoded = {text.encode("utf-8", "surrogatepass") for text in (secret, *_written(secret))}
    forms |= {form for each in encoded for form in _base64_forms(each)}
    given = secret.encode("utf-8", "surrogatepass")
    forms |= {spelled for form in _base32_forms(given) for spelled in (form, form.lower())}
    forms |= {*_base85_forms(given, base64.b85encode)}
    forms |= {written for form in _base85_forms(given, base64.a85encode) for written in (form, *_written(form))}
    digits = given.hex()
    return forms | {digits, digits.upper()}


def _words(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that are still secret after a text was cut into words."""
    for word in _WORD.findall(secret):
        mixed = not word.isalpha() and not word.isdigit()
        if len(word) >= _LONG or (len(word) >= _SHORTEST and mixed):
            yield from (word, word.lower())


def quoted_forms(secret: str) -> set[str]:
    """Return the spellings of a secret in a URL, or in a URL inside a URL, that differ from the plain ones.

    The forms of its base64 are included.
    """
    plain = [secret, *_base64_forms(secret.encode("utf-8", "surrogatepass"))]
    found: set[str] = set()
    for text in plain:
        for safe in ("", "/", "/:@!$&'()*+,;=-._~"):
            once = {quoting(text, safe=safe, errors="surrogatepass") for quoting in (quote, quote_plus)}
            found |= once | {quote(form, safe=outer) for form in once for outer in ("", "/")}
    return {with_capitals(form) for form in found if "%" in form or "+" in form} - set(plain)


def _secrets_in(name: str, value: str) -> Iterator[str]:
    secret_by_name = is_secret_name(name)
    if secret_by_name:
        # A program may remove the blanks around a value.
        yield from (form for form in (value, value.strip()) if len(form) >= _SHORTEST)
    if secret_by_name:
        yield from (line for each in value.splitlines() if _is_long(line := each.strip()) and line != value)
    if value.lstrip()[:1] in ("{", "[") and len(value) <= _MOST_JSON:
        for key, text in _texts_in(value):
            secret_by_key = is_secret_name(key)
            if (secret_by_key and _may_be_secret(key, text)) or (secret_by_name and _is_long(text)):
                yield text
            if secret_by_name or secret_by_key:
                yield from (line for each in text.splitlines() if _is_long(line := each.strip()))
    for match in URL_PASSWORD.finditer(value):
        password = match[2]
        for spelled in (password, unquote(password)):
            if len(spelled) >= _SHORTEST and spelled.casefold() not in _COMMON:
                yield spelled


def _may_be_secret(key: str, text: str) -> bool:
    """Return whether a text is long enough, and not only an address where keys are fetched (`token_uri`)."""
    is_address = text.startswith(_ADDRESSES) and _WORDS_OF_ADDRESSES.isdisjoint(key.upper().split("_"))
    return len(text) >= _SHORTEST and not is_address


def _is_long(text: str) -> bool:
    """Return whether a text is long enough to be secret because of its place, and is not a well-known value."""
    return len(text) >= _LONG and not text.startswith((*_ADDRESSES, "-----BEGIN ", "-----END "))


def _texts_in(value: str) -> Iterable[tuple[str, str]]:
    """Return (key, text) for each text inside JSON; nothing if the value is not JSON."""
    try:
        left: list[tuple[str, Any]] = [("", json.loads(value, strict=False))]
    except (ValueError, RecursionError):
        return ()
    found: list[tuple[str, str]] = []
    while left:
        key, item = left.pop()
        if isinstance(item, dict):
            left.extend((str(name), inner) for name, inner in item.items())
        elif isinstance(item, list):
            left.extend((key, inner) for inner in item)
        elif isinstance(item, str):
            found.append((key, item))
    return found


def _written(text: str) -> Iterator[str]:
    """Yield the escaped forms of a text in JSON and Python strings."""
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    # In a string with both kinds of quotes, Python escapes the single ones.
    yield repr(f"{text}\"'")[1:-1].removesuffix("\"\\'")
    encoded = text.encode("utf-8", "surrogatepass")
    yield repr(encoded)[2:-1]
    yield repr(encoded + b"\"'")[2:-1].removesuffix("\"\\'")


def _base32_forms(secret: bytes) -> Iterator[str]:
    """Yield the base32 characters that a secret alone decides, after 0 to 4 other bytes."""
    for before in range(5):
        whole = base64.b32encode(bytes(before) + secret).decode("ascii")
        yield whole[(before * 8 + 4) // 5 : (before + len(secret)) * 8 // 5]


def _base85_forms(secret: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the groups of five characters that a secret alone decides, after 0 to 3 other bytes.

    The groups are yielded with and without the shorter last one. A single group is too short to be recognised.
    """
    for before in range(4):
        rest = secret[-before % 4 :]
        if len(rest) >= 2 * _GROUP:
            yield encode(rest[: len(rest) - len(rest) % _GROUP]).decode("ascii")
            yield encode(rest).decode("ascii")


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the base64 characters that a secret alone decides, after 0, 1 and 2 other bytes."""
    for before in range(3):
        whole = base64.b64encode(bytes(before) + secret).decode("ascii")
        core = whole[(before * 8 + 5) // 6 : (before + len(secret)) * 8 // 6]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))
    whole = base64.b64encode(secret).decode("ascii")
    for width in _WRAPPED:
        if len(whole) > width:
            yield from (line for at in range(0, len(whole), width) if len(line := whole[at : at + width]) >= _LONG)


HEADER_TEXT = "[secret header]"
_HEADER_NAME = r"(?:(?:proxy-)?authorization|x-(?:goog-)?api-key)"
_PARAMETER = r"[\w-]+=(?:\\{0,7}[\"'][^\"'\\]*\\{0,7}[\"']|[^\s\"',}\\]*)"
_KNOWN_SCHEME = r"(?:bearer|basic|token|digest|negotiate)\s+[^\s\"',;}\\]+"
_ANY_SCHEME = rf"[a-z][\w-]*[ \t]+(?:{_PARAMETER}(?:\s*,\s*{_PARAMETER})*|[^\s\"',;}}\\]{{8,}})"
"""The value of a header: a scheme with parameters (Digest, AWS4-HMAC-SHA256) or with a credential (ApiKey)."""
_QUOTE = r"(?:b(?=\\*[\"']))?\\{0,7}[\"']"
_IN_MARKUP = r"(?:&quot;|&#(?:34|39|x22|x27);|%(?:25)?2[27])"
_BLANK = r"(?:\s|%(?:25)?20|\+)*"
"""Quotes and blanks, also as HTML and URLs write them."""
_HEADER = re.compile(
    rf"({_HEADER_NAME})((?:\\{{0,7}}[\"']|{_IN_MARKUP})?{_BLANK}(?:[:=]|%(?:25)?3[ad]){_BLANK}"
    rf"(?:\[\s*)?(?:{_QUOTE}|{_IN_MARKUP})?)"
    rf"({_ANY_SCHEME}|{_KNOWN_SCHEME}|[^\s\"',;}}\\]{{8,}})",
    re.IGNORECASE,
)
HEADER_PAIR = re.compile(
    rf"(authorization)(\\{{0,7}}[\"']\s*,\s*{_QUOTE})({_ANY_SCHEME}(?=\\{{0,7}}[\"']|$)|{_KNOWN_SCHEME})", re.IGNORECASE
)
"""A header as two items of a list. Without a scheme, they may be any two words."""
_VALUE_KEY = rf"(?:{_QUOTE})?values?(?:\\{{0,7}}[\"'])?\s*[:=]\s*(?:\[\s*)?{_QUOTE}"
_NAME_KEY = rf"(?:{_QUOTE})?(?:name|key|header)(?:\\{{0,7}}[\"'])?\s*[:=]\s*{_QUOTE}"
_NAMED_VALUE = re.compile(
    rf"(\b{_HEADER_NAME})(\\{{0,7}}[\"']\s*,\s*{_VALUE_KEY})({_ANY_SCHEME}|[^\"'\\]+)", re.IGNORECASE
)
_VALUE_FIRST = re.compile(
    rf"(\b{_VALUE_KEY})()({_ANY_SCHEME}|[^\"'\\]+)(?=\\{{0,7}}[\"']\s*\]?,\s*{_NAME_KEY}{_HEADER_NAME}\\{{0,7}}[\"'])",
    re.IGNORECASE,
)
"""A header as an object with its name and its value, in both orders."""
_ANY_HEADER = re.compile(
    rf"({_HEADER_NAME})(\\?[\"']?\s*[:=,]\s*\\?(?:b(?=[\"']))?[\"']?)(?!\[secret )"
    rf"({_ANY_SCHEME}|{_KNOWN_SCHEME}|[^\s\"',;}}\\]{{4,}})",
    re.IGNORECASE,
)
_QUERY = re.compile(r"([?&](?:key|api_key|access_token|token)=)[^\s&\"'#]+", re.IGNORECASE)
_BEARER = re.compile(r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_IN_MEMORY = re.compile(r" ?\bssl:default\b| ?(?:\bssl:)?<[\w.]+ object at 0x[0-9a-fA-F]+>")
_LONGEST = 2_000


class Scrubber:
    """Replacement of the secrets of one environment, and of the values in authorization headers and addresses.

    Objects shown only by their memory address, as in aiohttp's messages, are removed.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._forms = SecretForms(named_secrets(values))

    def __call__(self, text: str) -> str:
        """Return `text` without secrets, cut to 2,000 characters."""
        text = self._forms.replace(text)
        text = _ANY_HEADER.sub(rf"\1\2{HEADER_TEXT}", without_headers(text))
        text = _QUERY.sub(r"\1[secret]", text)
        text = _BEARER.sub(r"\1[secret]", text)
        text = _IN_MEMORY.sub("", text)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def without_headers(text: str) -> str:
    """Return `text` with the values of authorization headers replaced."""
    for pattern in (_HEADER, HEADER_PAIR, _NAMED_VALUE, _VALUE_FIRST):
        text = pattern.sub(rf"\1\2{HEADER_TEXT}", text)
    return text
