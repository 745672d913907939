"""What determines an answer, as the key under which it is kept."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.agents.function_source import function_file
from workbench.judge.availability import FUNCTION
from workbench.judge.base import JudgeIdentity, JudgeOptions, Question
from workbench.judge.cache import key_of
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import GoogleAccess
from workbench.regular_file import read_regular


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
    if identity.kind in ("python", "heuristic"):
        # These do not (only) read the prompt.
        parts |= {"kind": question.kind, "data": question.data}
    if identity.kind == "python":
        source = _source_of(options.model.removeprefix(FUNCTION), environment)
        if source is None:
            return None
        parts["source"] = hashlib.sha256(source).hexdigest()
    elif identity.kind == "heuristic":
        from workbench.judge import heuristic

        parts["version"] = heuristic.VERSION
    return key_of(parts)


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


def _source_of(path: str, environment: JudgeEnvironment) -> bytes | None:
    """The file that holds the function at `package.module:function`. What it imports is not looked at."""
    file = function_file(path, Path(environment.root), Path(environment.folder))
    try:
        return read_regular(file) if file is not None else None
    except OSError:
        return None
