"""Kinds of judges: which one a model's name selects, and whether it can be used.

Both are decided from the name and the environment alone, without a call and without importing a client. So a run can
report problems before its first case.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from workbench.files.plugins import ExtensionPoint
from workbench.judges.base import JudgeEnvironment, JudgeIdentity, JudgeOptions, NotAvailableError, Question, Scrub

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
"""Providers that name their models themselves. Others use arbitrary names."""
_OF_GOOGLE = re.compile(r"(publishers/google/)?models/")
"""Prefix of a model name in the paths of Google's services."""
_SHORTEST = 3
_LIKENESS = 0.74


def suggested_name(model: str) -> str | None:
    """Return the name that `model` probably stands for if a word in it looks misspelt, else None.

    Blanks around a name and capitals in one of Google's count as misspelt: the service does not know it.
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
    """Return the known word closest to `word`, or `word` itself."""
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

    It holds the first model requested, the agent's environment, the function that removes keys from messages, and the
    agent's own Python functions, which start on first use.
    """

    model: str
    environment: JudgeEnvironment
    scrub: Scrub
    functions: "Callable[[], Functions]"


def _nothing_else(question: Question, model: str, environment: JudgeEnvironment) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class JudgeKind:
    """A kind of judge.

    `spelling` shows how its models are named. `answers_for` says whether a model name belongs to this kind; it raises
    NotAvailableError if the name belongs to it but is malformed. `identify` returns who judges, and raises
    NotAvailableError if a key, a credential or a package is missing. `connect` is `module:attribute` of a function from
    a Connection to an Answerer. It is called in the scorer process; for other packages, in a child of that process.

    `determinants` are the inputs of an answer besides prompt, model, config and address. None means that they are
    unknown; then no answer is cached. A kind that `takes_the_rest` is tried last.
    """

    name: str
    spelling: str
    answers_for: Callable[[str], bool]
    identify: Callable[[str, JudgeEnvironment], JudgeIdentity]
    connect: str
    determinants: Callable[[Question, str, JudgeEnvironment], Mapping[str, Any] | None] = _nothing_else
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
        NotAvailableError: It names none.
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
    """Return who answers with these options, for the agent of `environment`.

    Raises:
        NotAvailableError: no judge can answer: a key, a credential or an extra is missing, or the name is unknown.
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
            raise TypeError(f"identify returned a {type(identity).__name__}")
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
    """Yield the kinds in the order in which they are tried.

    A plugin is imported only for a name that none of our kinds claims.
    """
    late = []
    for kind in JUDGES.values():
        if kind.takes_the_rest:
            late.append(kind)
        else:
            yield kind
    yield from late
