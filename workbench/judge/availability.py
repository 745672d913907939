"""Which judge a name means, and whether it can be asked: by the environment alone, without asking and without any
import of a client, so that a run can say it before the first case."""

import importlib.util
import re
from collections.abc import Mapping

from workbench.judge.addresses import checked, shown
from workbench.judge.base import JudgeIdentity, JudgeKind, JudgeOptions, NotAvailableError
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import gemini_access, uses_vertex

FUNCTION = "python:"
HEURISTIC = "heuristic"
_GEMINI = re.compile(r"(gemini-|models/|projects/[^/]+/locations/[^/]+/).", re.IGNORECASE)
_FUNCTION_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_PROVIDER = re.compile(r"[A-Za-z0-9_.-]+/\S+")
# What LiteLLM reads for providers that have one key and no other way in; an own address may need no key.
_LITELLM_KEYS = {
    "openai": ("OPENAI_API_KEY", ("OPENAI_API_BASE", "OPENAI_BASE_URL")),
    "anthropic": ("ANTHROPIC_API_KEY", ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")),
    "mistral": ("MISTRAL_API_KEY", ("MISTRAL_API_BASE",)),
    "groq": ("GROQ_API_KEY", ("GROQ_API_BASE",)),
    "openrouter": ("OPENROUTER_API_KEY", ("OPENROUTER_API_BASE",)),
    "deepseek": ("DEEPSEEK_API_KEY", ("DEEPSEEK_API_BASE",)),
    "xai": ("XAI_API_KEY", ("XAI_API_BASE",)),
}
_SAME_SERVER = {"ollama_chat": "ollama"}
_WAYS = (
    "name one of: `gemini-…` (Google), `provider/model` (LiteLLM), `python:package.module:function` (your own), "
    "`heuristic` (rules without a model)"
)


def kind_of(model: str) -> JudgeKind:
    """Which kind of judge `model` names.

    Raises:
        NotAvailableError: none.
    """
    if model == HEURISTIC:
        return "heuristic"
    if model.startswith(FUNCTION):
        if _FUNCTION_PATH.fullmatch(model.removeprefix(FUNCTION)):
            return "python"
        raise NotAvailableError(f"{model} names no function", "write python:package.module:function")
    if _GEMINI.match(model):
        return "gemini"
    if _PROVIDER.fullmatch(model):
        return "litellm"
    raise NotAvailableError(f"{model or 'an empty name'} is no judge that is known here", _WAYS)


def who_judges(options: JudgeOptions, environment: JudgeEnvironment) -> JudgeIdentity:
    """Who answers with these options, for the agent of `environment`.

    Raises:
        NotAvailableError: nobody, because a key, a credential or an extra is missing, or the name is unknown.
    """
    kind, model, values = kind_of(options.model), options.model, environment.values
    if kind == "gemini":
        return JudgeIdentity(model, kind, base_url=_gemini_address(model, values))
    if kind == "litellm":
        return JudgeIdentity(model, kind, base_url=_litellm_address(model, values))
    if kind == "python":
        return JudgeIdentity(model, kind, note="a Python function")
    from workbench.judge import heuristic

    return JudgeIdentity(model, kind, note=heuristic.NOTE)


def _gemini_address(model: str, values: Mapping[str, str]) -> str:
    if model.startswith("projects/") and not uses_vertex(values):
        raise NotAvailableError(
            f"{model} is a model on Vertex", "set GOOGLE_GENAI_USE_VERTEXAI=true in <agent>/.env, or use its short name"
        )
    return shown_or_none(gemini_access(model, values).base_url)


def _litellm_address(model: str, values: Mapping[str, str]) -> str:
    if importlib.util.find_spec("litellm") is None:
        raise NotAvailableError(f"{model} needs LiteLLM", 'pip install "agent-workbench[litellm]"')
    provider = model.partition("/")[0].lower()
    key, addresses = _LITELLM_KEYS.get(provider, ("", ()))
    named = re.sub(r"[.-]", "_", _SAME_SERVER.get(provider, provider)).upper()
    given = next(
        (
            (name, values[name])
            for name in addresses or (f"{named}_API_BASE", f"{named}_BASE_URL")
            if values.get(name) and "TOKEN" not in name
        ),
        None,
    )
    # Where no key goes, as to most servers of one's own, any address will do.
    sent = key or values.get(f"{named}_API_KEY")
    address = "" if given is None else checked(*given) if sent else given[1].strip().rstrip("/")
    if key and not values.get(key) and not any(values.get(name) for name in addresses):
        raise NotAvailableError(f"{model} needs a key", f"set {key} in <agent>/.env")
    return shown_or_none(address)


def shown_or_none(address: str) -> str:
    return shown(address) if address else ""
