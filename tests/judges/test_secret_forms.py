"""Secrets in every form that a text may contain, and texts that are not secret."""

import base64
import html
import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workbench.judges.secret_forms import Scrubber, SecretForms, named_secrets

LETTERS = st.characters(exclude_categories=["Cs"])
SECRETS = st.text(LETTERS, min_size=8, max_size=40).filter(
    lambda text: len(text.strip()) >= 8 and text.strip() == text and len(set(text)) > 3
)
LONGER = SECRETS.filter(lambda text: len(text.encode()) >= 11)
"""Base85 encodes groups of four bytes, so that it may mix up to three bytes of a secret with others."""
AROUND = st.text(LETTERS, max_size=10)


def replaced(secret: str, text: str, name: str = "THE_KEY") -> str:
    return SecretForms(named_secrets({name: secret})).replace(text)


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "JSON": json.dumps,
    "JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"k": text})),
    "repr of a dictionary's JSON": lambda text: repr(json.dumps({"k": text})),
    "URL": quote,
    "URL, all": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "URL in a URL": lambda text: quote(quote(text), safe=""),
    "HTML": html.escape,
    "hexadecimal": lambda text: text.encode().hex(),
    "base64 of JSON": lambda text: base64.b64encode(json.dumps(text)[1:-1].encode()).decode().rstrip("="),
}


@settings(max_examples=200, deadline=None)
@given(SECRETS, AROUND, AROUND, st.sampled_from(sorted(ENCODINGS)))
@example("000001 2", "", "", "form")
@example("0000012'", "", "", "repr of a dictionary's JSON")
def test_secret_is_found_in_each_encoding(secret: str, before: str, after: str, name: str) -> None:
    written = ENCODINGS[name](secret)
    core = written.strip("'\"b") if "repr" in name else written
    assert core not in replaced(secret, f"{before}{written}{after}") or core in "[secret THE_KEY]"


@settings(max_examples=200, deadline=None)
@given(SECRETS, st.binary(max_size=7), st.binary(max_size=7), st.booleans())
def test_secret_is_found_in_base64_at_any_offset(secret: str, before: bytes, after: bytes, urlsafe: bool) -> None:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    text = encode(before + secret.encode() + after).decode()
    assert "[secret THE_KEY]" in replaced(secret, text)
    assert "[secret THE_KEY]" in replaced(secret, f"auth={quote(text, safe='')}")


@settings(max_examples=100, deadline=None)
@given(SECRETS, st.binary(max_size=7), st.binary(max_size=7), st.booleans())
def test_secret_is_found_in_base32_at_any_offset(secret: str, before: bytes, after: bytes, small: bool) -> None:
    text = base64.b32encode(before + secret.encode() + after).decode()
    assert "[secret THE_KEY]" in replaced(secret, text.lower() if small else text)


@settings(max_examples=100, deadline=None)
@given(LONGER, st.binary(max_size=7), st.binary(max_size=7), st.sampled_from([base64.b85encode, base64.a85encode]))
def test_secret_is_found_in_base85_at_any_offset(
    secret: str, before: bytes, after: bytes, encode: Callable[[bytes], bytes]
) -> None:
    assert "[secret THE_KEY]" in replaced(secret, f"<~{encode(before + secret.encode() + b'123' + after).decode()}~>")
    text = encode(before + b"123" + secret.encode()).decode()
    assert replaced(secret, json.dumps(text)).endswith('[secret THE_KEY]"')


@given(st.lists(st.booleans(), min_size=60, max_size=60))
def test_url_escapes_are_found_in_any_case(small: list[bool]) -> None:
    secret = "p/w?x=y&ü z%"
    text = "".join(c.lower() if low else c for c, low in zip(quote(secret, safe=""), small, strict=False))
    assert replaced(secret, f"https://x.test/?q={text}&b=%2f") == "https://x.test/?q=[secret THE_KEY]&b=%2f"


PRIVATE = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n"
ACCOUNT = json.dumps(
    {
        "type": "service_account",
        "private_key_id": "0123456789abcdef",
        "private_key": PRIVATE,
        "client_email": "robot@project.example.test",
        "token_uri": "https://oauth2.example.test/token",
    }
)


@pytest.mark.parametrize("name", ["SERVICE_ACCOUNT_CREDENTIALS", "GOOGLE_ACCOUNT"])
@pytest.mark.parametrize(
    "text",
    [PRIVATE, repr(PRIVATE), json.dumps(PRIVATE), "MIIEvQIBADANBgkqhkiG9w0B", "id 0123456789abcdef", ACCOUNT],
)
def test_texts_inside_a_json_variable_are_secret(name: str, text: str) -> None:
    found = replaced(ACCOUNT, text, name)
    assert f"[secret {name}]" in found
    assert "MIIE" not in found
    assert "0123456789abcdef" not in found


@pytest.mark.parametrize("width", [64, 76])
def test_long_secret_is_found_in_wrapped_base64(width: int) -> None:
    whole = base64.b64encode(ACCOUNT.encode()).decode()
    lines = [whole[at : at + width] for at in range(0, len(whole), width)]
    found = replaced(ACCOUNT, "\n".join(lines)).split("\n")
    assert set(found[:-1]) == {"[secret THE_KEY]"}


def test_public_fields_of_a_service_account_stay() -> None:
    text = "service_account at https://oauth2.example.test/token"
    assert replaced(ACCOUNT, text, "ACCOUNT_KEY") == text


def test_password_in_a_url_is_secret_in_any_variable() -> None:
    forms = SecretForms(named_secrets({"DATABASE": "postgres://app:s3cr%2Ft-pass@db.test:5432/shop"}))
    assert forms.replace("tried s3cr/t-pass") == "tried [secret DATABASE]"
    assert forms.replace("tried s3cr%2ft-pass") == "tried [secret DATABASE]"
    assert "s3cr" not in forms.replace("cannot open postgres://app:s3cr%2Ft-pass@db.test:5432/shop")


def test_short_password_in_a_url_is_replaced() -> None:
    forms = SecretForms({})
    assert forms.replace("redis://:pw@cache:6379/0") == "redis://:[secret password]@cache:6379/0"
    assert forms.replace("mail a@b.test, see http://x.test:80/@me") == "mail a@b.test, see http://x.test:80/@me"


@pytest.mark.parametrize("text", ["SK_LIVE_51HABCDEFGHIJ", "sk live 51habcdefghij", "'51HabcdefGHIJ' is new"])
def test_secret_in_other_case_or_cut_into_words_is_found(text: str) -> None:
    found = replaced("sk_live_51HabcdefGHIJ", text)
    assert "51habc" not in found.lower()


def test_secret_word_is_not_replaced_in_its_variables_name() -> None:
    assert replaced("password", "DB_PASSWORD is password", "DB_PASSWORD") == "DB_PASSWORD is [secret DB_PASSWORD]"


def test_common_words_are_not_secrets() -> None:
    values = {"DATABASE": "postgres://postgres:password@db/x", "SHORT_KEY": "1234567", "HOME": "/home/somebody"}
    text = "the password of postgres is 1234567 in /home/somebody"
    assert SecretForms(named_secrets(values)).replace(text) == text


def test_replacement_time_is_linear_in_the_length() -> None:
    forms = SecretForms(named_secrets({f"KEY_{n}": f"s3cret/valüe {n:04}" for n in range(20)}))
    text = "a%2Fb http://x.test:80/ " * 45_000
    began = time.process_time()
    assert forms.replace(text) == text
    assert time.process_time() - began < 5


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
def test_beginning_of_a_secret_at_a_cut_is_replaced(length: int) -> None:
    assert SCRUB(f"401: bad key {SECRET[:length]}…") == "401: bad key [secret LONGER_TOKEN]…"


@pytest.mark.parametrize("ssl", ["ssl:default", "ssl:<ssl.SSLContext object at 0x7f12AB90>"])
def test_memory_addresses_are_removed(ssl: str) -> None:
    said = f"Cannot connect to host x.test:443 {ssl} [Connect call failed]"
    assert SCRUB(said) == "Cannot connect to host x.test:443 [Connect call failed]"
