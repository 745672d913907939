"""Removal of keys from messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.judges.scrub import Scrubber

SECRET = "sk-0123456789abcdef"
SCRUB = Scrubber(
    {"OPENAI_API_KEY": SECRET, "LONGER_TOKEN": SECRET + "-and-more", "PLACE": "Lisbon-Portugal", "PIN_KEY": "1234"}
)


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"401: bad key {SECRET}.",
        f"GET https://x.test/v1?key={SECRET}&alt=sse",
        f"{{'x-goog-api-key': '{SECRET}'}}",
        f"<Headers([('authorization', 'Bearer {SECRET}')])>",
        f'{{"Authorization": "Bearer {SECRET}"}}',
    ],
)
def test_known_secret_is_removed_everywhere(text: str) -> None:
    assert SECRET not in SCRUB(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://x.test/v1?key=unknown-to-us-123&alt=sse",
        "{'x-goog-api-key': 'unknown-to-us-123'}",
        "x-api-key: unknown-to-us-123",
        "('authorization', 'Bearer unknown-to-us-123')",
        "authorization: Basic unknown-to-us-123",
        "token Bearer unknown-to-us-123 refused",
    ],
)
def test_secrets_in_headers_and_addresses_are_removed(text: str) -> None:
    assert "unknown-to-us-123" not in SCRUB(text)


def test_secret_is_replaced_by_its_name() -> None:
    assert SCRUB(f"{SECRET} in Lisbon-Portugal, PIN 1234") == "[secret OPENAI_API_KEY] in Lisbon-Portugal, PIN 1234"
    assert SCRUB(f"{SECRET}-and-more") == "[secret LONGER_TOKEN]"


@given(st.text(), st.text())
def test_secret_is_removed_in_any_surrounding_text(before: str, after: str) -> None:
    assert SECRET not in SCRUB(before + SECRET + after)


def test_long_message_is_cut() -> None:
    assert len(SCRUB("x" * 1_000_000)) < 3_000


@pytest.mark.parametrize("length", [4, 11, len(SECRET) - 1])
def test_piece_of_a_secret_at_a_cut_is_removed(length: int) -> None:
    assert SCRUB(f"401: bad key {SECRET[:length]}…") == "401: bad key [secret LONGER_TOKEN]…"


@pytest.mark.parametrize("ssl", ["ssl:default", "ssl:<ssl.SSLContext object at 0x7f12AB90>"])
def test_memory_addresses_are_removed(ssl: str) -> None:
    said = f"Cannot connect to host x.test:443 {ssl} [Connect call failed]"
    assert SCRUB(said) == "Cannot connect to host x.test:443 [Connect call failed]"
