"""Kinds of judges, their selection by the name of a model, and models that retire.

Whether a judge can be used is decided from the name and the environment alone, without a call and without importing a
client. So a run can report problems before its first case. The dates in `RETIRING` were announced by the sources named
there.
"""

import contextlib
import hashlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workbench.agents.environment import install_extra_command
from workbench.agents.python_source import function_file
from workbench.files.file_access import read_regular
from workbench.files.plugins import ExtensionPoint
from workbench.judges.base import JudgeEnvironment, JudgeIdentity, JudgeOptions, NotAvailableError, Question, Scrub
from workbench.judges.google_access import checked_address, gemini_access, shown_address, uses_vertex
from workbench.worker.spans import model_name

if TYPE_CHECKING:
    from workbench.agents.answering_child import Functions


_WORDS_OF_NAMES = """
gemini gemma flash pro lite preview latest exp experimental live audio image thinking native tts ultra nano embedding
text think code multimodal robotics computer use dialog customtools deep research claude opus sonnet haiku instant gpt
mini turbo chat codex search transcribe realtime chatgpt mistral mixtral ministral magistral codestral devstral pixtral
large small medium tiny open nemo llama instruct maverick scout vision guard deepseek coder reasoner grok fast beta
reasoning command nova micro premier titan qwen plus max phi kimi versatile distill
"""
_NAMES_OF_PROVIDERS = """
openai anthropic azure bedrock vertex_ai gemini mistral groq openrouter deepseek xai cohere cohere_chat ollama
ollama_chat huggingface together_ai fireworks_ai perplexity replicate databricks sagemaker cerebras sambanova nvidia_nim
watsonx hosted_vllm lm_studio litellm_proxy
"""
_WORDS = frozenset(_WORDS_OF_NAMES.split())
_PROVIDERS = frozenset(_NAMES_OF_PROVIDERS.split())
_VENDORS = frozenset({"openai", "anthropic", "gemini", "vertex_ai", "mistral", "deepseek", "xai", "groq"})
"""Providers with well-known names of models. Models of other providers have arbitrary names."""
_OF_GOOGLE = re.compile(r"(publishers/google/)?models/")
"""Prefix of a model name in the paths of Google's services."""
_SHORTEST = 3
_LIKENESS = 0.74


def suggested_name(model: str) -> str | None:
    """Return the probably intended name if a word in `model` looks misspelt, else None.

    Blanks around a name, and capitals in a name of Google's, count as misspelt, because the service rejects them.
    """
    path = _OF_GOOGLE.match(model)
    provider, slash, name = model.strip().partition("/") if path is None else ("", path[0], model[path.end() :].strip())
    if not slash:
        provider, name = "", provider
    better = _corrected(provider, _PROVIDERS)
    if path is not None or not slash or (better in _VENDORS and "/" not in name):
        name = re.sub(r"[A-Za-z_]+", lambda word: _corrected(word[0], _WORDS), name)
    if name.lower().startswith("gemini-"):
        name = name.lower()
    corrected = f"{better}{slash}{name}"
    return corrected if corrected != model else None


def _corrected(word: str, known: frozenset[str]) -> str:
    """Return the known word closest to `word`, or `word` itself if none is close."""
    lower = word.lower()
    if len(word) < _SHORTEST or lower in known:
        return word
    swapped = [other for other in known if len(other) == len(lower) and sorted(other) == sorted(lower)]
    if len(lower) == _SHORTEST:
        return swapped[0] if swapped else word
    return next(iter(get_close_matches(lower, sorted(known), n=1, cutoff=_LIKENESS)), word)


@dataclass(frozen=True)
class Connection:
    """Input for the function that connects to a judge.

    `model` is the first model requested, `scrub` removes keys from messages, and `functions` returns the agent's own
    Python functions, which start on first use.
    """

    model: str
    environment: JudgeEnvironment
    scrub: Scrub
    functions: "Callable[[], Functions]"


@dataclass(frozen=True)
class JudgeKind:
    """A kind of judge.

    `spelling` shows how its models are named. `answers_for` says whether a model name belongs to this kind; it raises
    NotAvailableError if the name belongs to it but is malformed. `identify` returns the judge's identity, and raises
    NotAvailableError if a key, a credential or a package is missing. `connect` is `module:attribute` of a function from
    a Connection to an Answerer. It is called in the scorer process; for other packages, in a child of that process.

    `determinants` returns the inputs of an answer besides prompt, model, config and address. If it returns None, they
    are unknown, and no answer is cached. A kind that `takes_the_rest` is tried last.
    """

    name: str
    spelling: str
    answers_for: Callable[[str], bool]
    identify: Callable[[str, JudgeEnvironment], JudgeIdentity]
    connect: str
    determinants: Callable[[Question, str, JudgeEnvironment], Mapping[str, Any] | None] = lambda *inputs: {}
    takes_the_rest: bool = False


def _probe(kind: JudgeKind) -> None:
    with contextlib.suppress(NotAvailableError):
        kind.answers_for("probe")


_ALTERNATIVES = (
    "another model: provider/model (LiteLLM), ollama/NAME (on your machine), or python:package.module:function (your "
    "own Python function)"
)
JUDGES: Final = ExtensionPoint("judges", JudgeKind, probe=_probe)


def kind_of(model: str) -> JudgeKind:
    """Return the kind of judge that `model` names.

    Raises:
        NotAvailableError: `model` names no kind, or is malformed.
    """
    failures = []
    for kind in _in_order():
        try:
            is_its_own = kind.answers_for(model)
        except NotAvailableError:
            raise
        except Exception as error:
            if is_own(kind):
                raise
            failures.append(_failure(kind, error))
            continue
        if is_its_own:
            return kind
    hint = f"use one of: {', '.join(kind.spelling for kind in JUDGES.values())}"
    message = f"{model or 'an empty name'} is not a known judge"
    raise NotAvailableError("; ".join([message, *failures]), hint)


def is_own(kind: JudgeKind) -> bool:
    """Return whether the kind belongs to the workbench itself."""
    return JUDGES.extension(kind.name).is_own


def identify_judge(options: JudgeOptions, environment: JudgeEnvironment) -> JudgeIdentity:
    """Return the identity of the judge for these options, for the agent of `environment`.

    Raises:
        NotAvailableError: A key, a credential or an extra is missing, the name is unknown or malformed, or a judge of
            another package failed.
    """
    kind = kind_of(options.model)
    if is_own(kind):
        try:
            return kind.identify(options.model, environment)
        except NotAvailableError as error:
            raise NotAvailableError(str(error), f"{error.hint}, or use {_ALTERNATIVES}") from None
    try:
        identity = kind.identify(options.model, environment)
        if not isinstance(identity, JudgeIdentity):
            raise TypeError(f"identify returned {type(identity).__name__}, not a JudgeIdentity")
    except NotAvailableError:
        raise
    except Exception as error:
        hint = f"update {JUDGES.extension(kind.name).package}, or name another judge"
        raise NotAvailableError(_failure(kind, error), hint) from error
    return identity


def _failure(kind: JudgeKind, error: Exception) -> str:
    package = JUDGES.extension(kind.name).package
    return f"the judge {kind.name} of {package} failed: {type(error).__name__}: {error}"


def _in_order() -> Iterator[JudgeKind]:
    """Yield the kinds in the order in which they are tried. A plugin is imported when its turn comes."""
    late = []
    for kind in JUDGES.values():
        if kind.takes_the_rest:
            late.append(kind)
        else:
            yield kind
    yield from late


class _End(NamedTuple):
    day: date
    source: str


class _Retiring(NamedTuple):
    successor: str
    ends: tuple[_End, ...]


def _api(year: int, month: int, day: int, then: str = "") -> _End:
    routed = f"; then answered by {then}" if then else ""
    return _End(date(year, month, day), f"Gemini API, ai.google.dev/gemini-api/docs/deprecations{routed}")


_VERTEX = _End(date(2026, 10, 20), "Vertex AI, model lifecycle")
_ADK = _End(date(2026, 10, 16), "release notes of adk-python 2.2.0")
_GEMINI_2_0 = _Retiring("gemini-3.5-flash", (_api(2026, 6, 1),))
_GEMINI_2_0_LITE = _Retiring("gemini-3.1-flash-lite", (_api(2026, 6, 1),))
RETIRING: Mapping[str, _Retiring] = {
    "gemini-2.0-flash": _GEMINI_2_0,
    "gemini-2.0-flash-001": _GEMINI_2_0,
    "gemini-2.0-flash-lite": _GEMINI_2_0_LITE,
    "gemini-2.0-flash-lite-001": _GEMINI_2_0_LITE,
    "gemini-2.5-flash": _Retiring("gemini-3.5-flash-lite", (_ADK, _VERTEX, _api(2026, 12, 1, "gemini-3.5-flash-lite"))),
    "gemini-2.5-pro": _Retiring("gemini-3.8-flash", (_VERTEX, _api(2026, 12, 1, "gemini-3.8-flash"))),
    "gemini-3-pro-preview": _Retiring("gemini-3.1-pro-preview", (_api(2026, 3, 9),)),
    "gemini-3.1-flash-lite-preview": _Retiring("gemini-3.1-flash-lite", (_api(2026, 5, 25),)),
}
"""The successor and the announced ends of retiring models, by name without provider and project."""
NAMES = re.compile("|".join(map(re.escape, RETIRING)).encode())
"""A pattern that finds the models of `RETIRING` in a source file."""


def retirement(model: str, today: date | None = None) -> str:
    """Return `gemini-2.5-flash ended on 2026-10-20 (Vertex AI, …)`, or "" for a model without an announced end.

    `today` defaults to the current day in UTC.
    """
    found = RETIRING.get(model_name(model))
    if found is None:
        return ""
    now = today or datetime.now(UTC).date()
    ends = (f"{'ended' if end.day <= now else 'ends'} on {end.day} ({end.source})" for end in found.ends)
    return f"{model_name(model)} {', '.join(ends)}"


def retires(who: str, model: str) -> str:
    """Return the warning that an agent, judge or simulated user has a retiring model, or "" if it does not retire."""
    ending = retirement(model)
    return f"{who} uses a model that retires: {ending}" if ending else ""


def successor_hint(model: str) -> str:
    """Return the advice to name the successor of a retiring model."""
    return f"Name {RETIRING[model_name(model)].successor} or another current model"


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
        hint = "set GOOGLE_GENAI_USE_VERTEXAI=true in <agent>/.env, or use its short name"
        raise NotAvailableError(f"{model} is a model on Vertex", hint)
    return JudgeIdentity(model, "gemini", base_url=shown_address(gemini_access(model, values).base_url))


def _litellm(model: str, environment: JudgeEnvironment) -> JudgeIdentity:
    if importlib.util.find_spec("litellm") is None:
        raise NotAvailableError(f"{model} needs LiteLLM", install_extra_command("litellm"))
    provider = model.partition("/")[0].lower()
    key, addresses = _LITELLM_KEYS.get(provider, ("", ()))
    values = environment.values
    named = re.sub(r"[.-]", "_", _SAME_SERVER.get(provider, provider)).upper()
    places = [name for name in addresses or (f"{named}_API_BASE", f"{named}_BASE_URL") if "TOKEN" not in name]
    given = next(((name, values[name]) for name in places if values.get(name)), None)
    # Without a key, as for most local servers, any address is safe.
    sent = key or values.get(f"{named}_API_KEY")
    address = "" if given is None else checked_address(*given) if sent else given[1].strip().rstrip("/")
    if key and not values.get(key) and not any(values.get(name) for name in addresses):
        raise NotAvailableError(f"{model} needs a key", f"set {key} in <agent>/.env")
    return JudgeIdentity(model, "litellm", base_url=shown_address(address))


def _is_function(model: str) -> bool:
    if not model.startswith(FUNCTION):
        return False
    if _FUNCTION_PATH.fullmatch(model.removeprefix(FUNCTION)):
        return True
    raise NotAvailableError(f"{model} does not name a function", "write python:package.module:function")


def _function_source(question: Question, model: str, environment: JudgeEnvironment) -> Mapping[str, Any] | None:
    """Return the question's data and a digest of the function's file, or None if the file cannot be read.

    Modules that the file imports are ignored.
    """
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
    connect="workbench.judges.clients:connect_function",
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
    connect="workbench.judges.clients:LiteLlm",
    takes_the_rest=True,
)
