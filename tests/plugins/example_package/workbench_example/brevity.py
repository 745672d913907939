"""A criterion: how short the answers are, from 1.0 (at most `words` words) to 0.0 (twice that)."""

from pydantic import Field

from workbench.criteria.base import Scored, ScoreRequest, mean, status_of
from workbench.criteria.description import CriterionDescription, Options, read_options
from workbench.events.events import MetricResult
from workbench.files.invocation import content_text


class BrevityOptions(Options):
    """The options beside `threshold`, each with a default and a description."""

    words: int = Field(20, description="Words that an answer may have.", ge=1)


def score(request: ScoreRequest) -> Scored:
    """Score one case: the mean over its turns. Runs in the scorer process."""
    criterion = request.criterion
    options = read_options(BrevityOptions, criterion)
    counts = [len(content_text(turn.get("final_response")).split()) for turn in request.actual]
    scores = [max(0.0, min(1.0, 2.0 - count / options.words)) for count in counts]
    whole = mean(scores)
    result = MetricResult(
        criterion.name,
        status_of(whole, criterion.threshold),
        whole,
        criterion.threshold,
        f"the longest answer has {max(counts)} words",
        {"words": counts},
    )
    return Scored(result)


BREVITY = CriterionDescription(
    name="brevity",
    title="short answers",
    measures="How short the answers are.",
    when_to_use="For agents that people listen to.",
    how_to_read="1.0: no answer is longer than it may be. 0.0: they are twice as long, or longer.",
    score="workbench_example.brevity:score",
    options=BrevityOptions,
    looks_at=frozenset({"answer"}),
)
