"""Cache keys of answers and ratings, made from everything that determines them."""

from collections.abc import Mapping
from typing import Any

from workbench.judges.base import JudgeIdentity, JudgeOptions, Question
from workbench.judges.cache import key_of
from workbench.judges.environment import JudgeEnvironment
from workbench.judges.google_access import GoogleAccess
from workbench.judges.kinds import kind_of


def question_key(
    question: Question,
    identity: JudgeIdentity,
    options: JudgeOptions,
    environment: JudgeEnvironment,
    sample: int,
    repeat: int,
) -> str | None:
    """Return the key of an answer, or None if the answer must not be cached.

    An answer is not cached if it depends on something unknown, such as a Python function whose file was not found.
    """
    parts: dict[str, Any] = {
        "judge": identity.kind,
        "model": options.model,
        "base_url": identity.base_url,
        "config": options.config,
        "prompt": question.prompt,
        "schema": question.schema,
        "sample": sample,
        "repeat": repeat,
    }
    others = kind_of(options.model).determinants(question, options.model, environment)
    return None if others is None else key_of({**parts, **others})


def rating_key(metric: str, instance: Mapping[str, Any], access: GoogleAccess, repeat: int) -> str:
    """Return the key of a rating of the evaluation service."""
    return key_of(
        {
            "judge": "vertex",
            "metric": metric,
            "instance": instance,
            "project": access.project,
            "location": access.location,
            "base_url": access.base_url,
            "repeat": repeat,
        }
    )
