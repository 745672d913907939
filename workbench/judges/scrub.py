"""Removal of keys from messages of services and their clients.

The message of an exception may quote the request, an address may contain `key=…`, and a server may repeat the request
in its reply.
"""

import re
from collections.abc import Mapping, Sequence

from workbench.judges.secret_forms import SecretForms, named_secrets

_HEADER = re.compile(
    r"((?:proxy-)?authorization|x-(?:goog-)?api-key)(\\?[\"']?\s*[:=,]\s*\\?(?:b(?=[\"']))?[\"']?)"
    r"((?:bearer|basic|token|digest|negotiate)\s+[^\s\"',;}\\]+|[^\s\"',;}\\]{4,})",
    re.IGNORECASE,
)
_QUERY = re.compile(r"([?&](?:key|api_key|access_token|token)=)[^\s&\"'#]+", re.IGNORECASE)
_BEARER = re.compile(r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_IN_MEMORY = re.compile(r" ?\bssl:default\b| ?(?:\bssl:)?<[\w.]+ object at 0x[0-9a-fA-F]+>")
_LONGEST = 2_000
_PIECE = 4
"""Minimum characters of a secret at the end of a cut text to be treated as a piece of it."""


class Scrubber:
    """Replacement of the secrets of one environment (`workbench.judges.secret_forms`).

    It also replaces the values in authorization headers and addresses. Objects shown only by their memory address, as
    in aiohttp's messages, are removed because they say nothing.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        named = named_secrets({name: value.strip() for name, value in values.items()})
        # The longest first, so that a secret that contains another one is replaced as a whole.
        self._values = sorted(named.items(), key=lambda item: -len(item[0]))
        self._forms = SecretForms(named)

    def __call__(self, text: str) -> str:
        """Return `text` without secrets, cut to the length of a message."""
        text = self._forms.replace(text)
        text = without_piece(text, self._values)
        text = _HEADER.sub(r"\1\2[secret header]", text)
        text = _QUERY.sub(r"\1[secret]", text)
        text = _BEARER.sub(r"\1[secret]", text)
        text = _IN_MEMORY.sub("", text)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def without_piece(text: str, secrets: Sequence[tuple[str, str]]) -> str:
    """Return `text` without a piece of a secret at its end, if the text was cut before ("…").

    `secrets` are (value, name).
    """
    whole = text.removesuffix("…")
    if whole != text:
        for value, name in secrets:
            for length in range(len(value) - 1, _PIECE - 1, -1):
                if whole.endswith(value[:length]):
                    return f"{whole[:-length]}[secret {name}]…"
    return text
