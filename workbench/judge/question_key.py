"""What determines an answer, as the key under which it is kept."""

from collections.abc import Mapping
from typing import Any

from workbench.judge.base import JudgeIdentity, JudgeOptions, Question
from workbench.judge.cache import key_of
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import GoogleAccess
from workbench.judge.kinds import kind_of


def question_key(
    question: Question,
    identity: JudgeIdentity,
    options: JudgeOptions,
    environment: JudgeEnvironment,
    sample: int,
    repeat: int,
) -> str | None:
    """The key of an answer; None where it depends on something that cannot be known, so that it is not kept: a Python
    function whose file is not found."""
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
    """The key of a rating of the evaluation service."""
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
