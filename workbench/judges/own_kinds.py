"""Kinds of judges that belong to the workbench: the names they answer for and their requirements.

No client is imported here.
"""

import hashlib
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from workbench.agents.environment import install_extra
from workbench.agents.python_source import function_file
from workbench.files.file_access import read_regular
from workbench.judges.base import JudgeEnvironment, JudgeIdentity, NotAvailableError, Question
from workbench.judges.google_access import checked_address, gemini_access, shown_address, uses_vertex
from workbench.judges.kinds import JudgeKind

FUNCTION = "python:"
_GEMINI = re.compile(r"(gemini-|models/|projects/[^/]+/locations/[^/]+/).", re.IGNORECASE)
_FUNCTION_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_PROVIDER = re.compile(r"[A-Za-z0-9_.-]+/\S+")
# Keys and addresses that LiteLLM reads, for providers with a single key. A custom address may need no key.
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


def _gemini(model: str, environment: JudgeEnvironment) -> JudgeIdentity:
    values = environment.values
    if model.startswith("projects/") and not uses_vertex(values):
        raise NotAvailableError(
            f"{model} is a model on Vertex", "set GOOGLE_GENAI_USE_VERTEXAI=true in <agent>/.env, or use its short name"
        )
    return JudgeIdentity(model, "gemini", base_url=shown_address(gemini_access(model, values).base_url))


def _litellm(model: str, environment: JudgeEnvironment) -> JudgeIdentity:
    return JudgeIdentity(model, "litellm", base_url=shown_address(_litellm_address(model, environment.values)))


def _litellm_address(model: str, values: Mapping[str, str]) -> str:
    if importlib.util.find_spec("litellm") is None:
        raise NotAvailableError(f"{model} needs LiteLLM", install_extra("litellm"))
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
    # Without a key, as for most local servers, any address is safe.
    sent = key or values.get(f"{named}_API_KEY")
    address = "" if given is None else checked_address(*given) if sent else given[1].strip().rstrip("/")
    if key and not values.get(key) and not any(values.get(name) for name in addresses):
        raise NotAvailableError(f"{model} needs a key", f"set {key} in <agent>/.env")
    return address


def _is_function(model: str) -> bool:
    if not model.startswith(FUNCTION):
        return False
    if _FUNCTION_PATH.fullmatch(model.removeprefix(FUNCTION)):
        return True
    raise NotAvailableError(f"{model} does not name a function", "write python:package.module:function")


def _function_source(question: Question, model: str, environment: JudgeEnvironment) -> Mapping[str, Any] | None:
    """Return the question's data and a digest of the function's file. Modules that the file imports are ignored."""
    path = model.removeprefix(FUNCTION)
    file = function_file(path, Path(environment.root), Path(environment.folder))
    try:
        source = read_regular(file) if file is not None else None
    except OSError:
        source = None
    if source is None:
        return None
    return {"kind": question.kind, "data": question.data, "source": hashlib.sha256(source).hexdigest()}


PYTHON: Final = JudgeKind(
    "python",
    "`python:package.module:function` (your own)",
    answers_for=_is_function,
    identify=lambda model, environment: JudgeIdentity(model, "python", "a Python function", by="function"),
    connect="workbench.judges.python_function:connect",
    determinants=_function_source,
)
GEMINI: Final = JudgeKind(
    "gemini",
    "`gemini-…` (Google)",
    answers_for=lambda model: _GEMINI.match(model) is not None,
    identify=_gemini,
    connect="workbench.judges.gemini:connect",
)
LITELLM: Final = JudgeKind(
    "litellm",
    "`provider/model` (LiteLLM)",
    answers_for=lambda model: _PROVIDER.fullmatch(model) is not None,
    identify=_litellm,
    connect="workbench.judges.litellm:connect",
    takes_the_rest=True,
)
