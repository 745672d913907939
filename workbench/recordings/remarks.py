"""What a user must know about a recording before relying on it."""

from collections.abc import Iterator

from workbench.counting import counted, few
from workbench.recordings.recording import Recording


def remarks(recording: Recording) -> Iterator[str]:
    """Yield remarks about a new recording: one sentence each, as raw text without a full stop."""
    if not recording.origin.effects and recording.calls:
        yield "effects of tools (state, artifacts, actions) are not known: the run has no recorded calls"
    for call in recording.calls:
        if call.lost:
            yield f"{call.tool} in turn {call.turn} has no recorded outcome: {call.lost}"
    for tool in dict.fromkeys(call.tool for call in recording.calls if call.streams):
        yield f"{tool} is a generator: only what the framework made of its values is replayed, not each of them"
    for model in recording.models:
        if model.lost:
            yield f"a model call of {model.agent} in turn {model.turn} has no recorded outcome: {model.lost}"
    if secrets := sum(call.secret for call in recording.calls) + sum(model.secret for model in recording.models):
        yield f"{counted(secrets, 'answer')} held a secret, which was replaced"
    if names := [f"{name} of {tool}" for tool, ignored in recording.ignore.items() for name in ignored]:
        yield f"ignored when calls are looked up: {few(names)}"
