"""Misspelt model names."""

import pytest

from workbench.judges.kinds import suggested_name

_IN_USE = """
gemini-2.5-flash gemini-2.5-flash-lite-preview-06-17 gemini-2.0-flash-001 gemini-3-pro-preview gemini-flash-latest
gemini-2.5-flash-native-audio-preview-09-2025 gemini-live-2.5-flash-preview gemini-2.5-computer-use-preview-10-2025
gemini-robotics-er-1.5-preview gemini-2.5-pro-exp-03-25 gemini-3-deep-think gemma-3n-e4b-it model-optimizer-exp-04-09
openai/gpt-4o openai/gpt-4o-mini openai/o3-mini openai/gpt-5.1-codex-max anthropic/claude-sonnet-4-5-20250929
anthropic/claude-3-5-haiku-latest groq/llama-3.3-70b-versatile openrouter/anthropic/claude-3.7-sonnet:thinking
ollama_chat/llama3.1 mistral/mistral-large-latest vertex_ai/claude-opus-4@20250514 xai/grok-4-fast-reasoning
bedrock/anthropic.claude-3-sonnet-20240229-v1:0 azure/my-deployment openrouter/x-ai/grok-code-fast-1
fireworks_ai/accounts/fireworks/models/kimi-k2 huggingface/HuggingFaceH4/zephyr-7b-beta hosted_vllm/me/flsh
projects/p/locations/us/endpoints/123 models/gemini-2.5-flash my-model scripted-judge python:desk.judge:score
"""


@pytest.mark.parametrize("model", _IN_USE.split())
def test_existing_model_names_get_no_suggestion(model: str) -> None:
    assert suggested_name(model) is None


@pytest.mark.parametrize(
    ("model", "better"),
    [
        ("gemini-2.5-flsh", "gemini-2.5-flash"),
        ("gemini-2.5-falsh-lite", "gemini-2.5-flash-lite"),
        ("gemini-2.5-por", "gemini-2.5-pro"),
        ("gemni-2.5-flash", "gemini-2.5-flash"),
        ("opnai/gpt-4o", "openai/gpt-4o"),
        ("anthropic/claude-sonet-4", "anthropic/claude-sonnet-4"),
        ("gemini-2.5-flash ", "gemini-2.5-flash"),
        (" openai/gpt-4o", "openai/gpt-4o"),
        ("Gemini-2.5-Flash", "gemini-2.5-flash"),
        ("models/gemini-2.5-flsh", "models/gemini-2.5-flash"),
        ("publishers/google/models/gemni-2.5-flash", "publishers/google/models/gemini-2.5-flash"),
    ],
)
def test_misspelt_word_is_corrected(model: str, better: str) -> None:
    assert suggested_name(model) == better
