"""Identity of a judge by name and environment."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from workbench.agents.environment import install_extra_command
from workbench.judges import google_access
from workbench.judges.base import JudgeEnvironment, JudgeIdentity, JudgeOptions, NotAvailableError
from workbench.judges.kinds import identify_judge, kind_of


def judged_by(model: str, values: Mapping[str, str]) -> JudgeIdentity:
    return identify_judge(JudgeOptions(model=model), JudgeEnvironment("e", {"HOME": "/nonexistent", **values}))


def refusal(model: str, values: Mapping[str, str]) -> str:
    with pytest.raises(NotAvailableError) as caught:
        judged_by(model, values)
    return f"{caught.value}: {caught.value.hint}"


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("gemini-2.5-flash", "gemini"),
        ("models/gemini-2.5-pro", "gemini"),
        ("projects/p/locations/l/publishers/google/models/gemini-2.5-pro", "gemini"),
        ("projects/p/locations/l/endpoints/123", "gemini"),
        ("gemini/gemini-2.5-flash", "litellm"),
        ("openai/gpt-4o", "litellm"),
        ("ollama/llama3:8b", "litellm"),
        ("openrouter/anthropic/claude-sonnet-4", "litellm"),
        ("python:judges.mine:decide", "python"),
        ("python:judges:decide", "python"),
    ],
)
def test_model_name_selects_the_kind_of_judge(model: str, kind: str) -> None:
    assert kind_of(model).name == kind


@pytest.mark.parametrize("model", ["", "gpt-4o", "claude", "heuristic", "/x", "x/", "open ai/gpt"])
def test_unknown_name_lists_the_kinds(model: str) -> None:
    said = refusal(model, {})
    assert all(way in said for way in ("gemini-", "provider/model", "python:"))


@pytest.mark.parametrize("model", ["python:", "python:judges", "python:judges.decide", "python:a:b:c", "python:1a:b"])
def test_refused_function_name_shows_the_right_form(model: str) -> None:
    assert "python:package.module:function" in refusal(model, {})


def test_missing_key_has_a_hint() -> None:
    said = refusal("gemini-2.5-flash", {})
    assert said == (
        "gemini-2.5-flash needs a key: set GOOGLE_API_KEY (or GOOGLE_GENAI_USE_VERTEXAI=true with "
        "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION) in <agent>/.env, or use another model: provider/model "
        "(LiteLLM), ollama/NAME (on your machine), or python:package.module:function (your own Python function)"
    )


@pytest.mark.parametrize("name", ["GOOGLE_API_KEY", "GEMINI_API_KEY"])
def test_key_is_enough_to_use_gemini(name: str) -> None:
    assert judged_by("gemini-2.5-flash", {name: "k"}) == JudgeIdentity("gemini-2.5-flash", "gemini")
    assert "needs a key" in refusal("gemini-2.5-flash", {name: "  "})


def test_custom_address_is_shown_without_secrets() -> None:
    base = {"GOOGLE_API_KEY": "k"}
    shown = {
        "https://proxy.test:8443/gemini/": "https://proxy.test:8443/gemini",
        "https://user:pass@proxy.test/x?key=1": "https://proxy.test/x",
        "https://generativelanguage.googleapis.com/": "",
        "http://127.0.0.1:9000": "http://127.0.0.1:9000",
        "http://localhost:9000": "http://localhost:9000",
        "http://[::1]:9000": "http://[::1]:9000",
    }
    for address, expected in shown.items():
        assert judged_by("gemini-x", {**base, "GOOGLE_GEMINI_BASE_URL": address}).base_url == expected


@pytest.mark.parametrize(
    "address",
    ["http://proxy.test", "http://10.0.0.1:80", "ftp://localhost", "proxy.test", "http://127.0.0.1.evil.test", "https://",
     "http://localhost@evil.test", "https://x.test:port"],
)  # fmt: skip
def test_insecure_address_is_refused(address: str) -> None:
    said = refusal("gemini-2.5-flash", {"GOOGLE_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": address})
    assert "GOOGLE_GEMINI_BASE_URL" in said
    assert "https" in said
    said = refusal("openai/gpt-4o", {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": address})
    assert "OPENAI_API_BASE" in said


VERTEX = {"GOOGLE_GENAI_USE_VERTEXAI": "True", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}


def test_project_needs_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_access, "_PRODUCT", tmp_path / "product_name")
    assert "needs Google credentials" in refusal("gemini-x", VERTEX)
    assert "does not exist" in refusal(
        "gemini-x", {**VERTEX, "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "no.json")}
    )
    file = tmp_path / "account.json"
    file.write_text("{}")
    assert judged_by("gemini-x", {**VERTEX, "GOOGLE_APPLICATION_CREDENTIALS": str(file)}).kind == "gemini"
    known = tmp_path / ".config" / "gcloud" / "application_default_credentials.json"
    known.parent.mkdir(parents=True)
    known.write_text("{}")
    assert judged_by("gemini-x", {**VERTEX, "HOME": str(tmp_path)}).kind == "gemini"
    assert judged_by("gemini-x", {**VERTEX, "CLOUDSDK_CONFIG": str(known.parent)}).kind == "gemini"
    (tmp_path / "product_name").write_text("Google Compute Engine\n")
    assert judged_by("gemini-x", VERTEX).kind == "gemini"
    assert "credentials" in refusal("gemini-x", {**VERTEX, "NO_GCE_CHECK": "true"})


def test_placeholder_credentials_are_for_this_machine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_access, "_PRODUCT", tmp_path / "product_name")
    here = {**VERTEX, "GOOGLE_VERTEX_BASE_URL": "http://127.0.0.1:1"}
    assert judged_by("gemini-x", here).base_url == "http://127.0.0.1:1"
    assert "credentials" in refusal("gemini-x", {**VERTEX, "GOOGLE_VERTEX_BASE_URL": "https://proxy.test"})


def test_vertex_model_name_needs_vertex() -> None:
    model = "projects/p/locations/l/publishers/google/models/gemini-2.5-pro"
    assert "GOOGLE_GENAI_USE_VERTEXAI" in refusal(model, {"GOOGLE_API_KEY": "k"})


def test_provider_with_one_key_needs_it() -> None:
    assert refusal("openai/gpt-4o", {}).startswith(
        "openai/gpt-4o needs a key: set OPENAI_API_KEY in <agent>/.env, or use another model: "
    )
    assert judged_by("openai/gpt-4o", {"OPENAI_API_KEY": "k"}).kind == "litellm"
    local = judged_by("openai/llama", {"OPENAI_API_BASE": "http://localhost:8000/v1"})
    assert local.base_url == "http://localhost:8000/v1"
    assert judged_by("ollama/llama3", {}).kind == "litellm", "there is nothing to check without asking it"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("ollama/llama3", "OLLAMA_API_BASE"),
        ("ollama_chat/llama3", "OLLAMA_API_BASE"),
        ("hosted_vllm/llama3", "HOSTED_VLLM_API_BASE"),
        ("azure/gpt-4o", "AZURE_API_BASE"),
    ],
)
def test_custom_address_needs_https_only_with_a_key(model: str, name: str) -> None:
    near, key = {name: "http://10.0.0.7:11434/"}, {name.replace("_API_BASE", "_API_KEY"): "k"}
    assert judged_by(model, near).base_url == "http://10.0.0.7:11434"
    assert name in refusal(model, {**near, **key})
    assert judged_by(model, {**key, name: "https://x.test"}).base_url == "https://x.test"


def test_missing_litellm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    assert install_extra_command("litellm") in refusal("openai/gpt-4o", {"OPENAI_API_KEY": "k"})


def test_identifying_a_judge_imports_no_client() -> None:
    code = """
import json, sys
from workbench.judges.kinds import identify_judge
from workbench.judges.base import JudgeOptions
from workbench.judges.base import JudgeEnvironment
for model in ("gemini-2.5-flash", "openai/gpt-4o", "python:a:b"):
    identify_judge(JudgeOptions(model=model), JudgeEnvironment("e", {"GOOGLE_API_KEY": "k", "OPENAI_API_KEY": "k"}))
heavy = ("google.genai", "google.auth", "litellm", "httpx")
print(json.dumps([name for name in sys.modules if name.startswith(heavy)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
