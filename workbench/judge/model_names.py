"""Suggestions for misspelt model names, based on the words in them.

There is no list of models, because it would be out of date. The words in vendors' names change rarely: a word that is
close to one of them but not equal counts as misspelt.
"""

import re
from difflib import get_close_matches

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
