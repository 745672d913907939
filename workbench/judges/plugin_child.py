"""Child process with the judges of other packages, in the agent's environment: one process per kind.

Request: `{"judge", "environment", "question", "options", "sample"}`. Reply: an `Answer`, as JSON.
"""

import os
from dataclasses import asdict
from typing import Any

from workbench.agents.answering_child import Functions
from workbench.files.plugins import BrokenExtensionError, resolve
from workbench.judges.base import (
    Answer,
    Answerer,
    JudgeCallError,
    JudgeEnvironment,
    JudgeOptions,
    NotAvailableError,
    Question,
    Scrub,
)
from workbench.judges.child import ClientChild, run_child
from workbench.judges.kinds import JUDGES, Connection


class PluginJudge(ClientChild):
    """The parent's end: the judges of one kind for one environment, as an `Answerer`."""

    def __init__(self, judge: str, environment: JudgeEnvironment, scrub: Scrub) -> None:
        self._judge = judge
        self._environment = {**asdict(environment), "values": {}}  # The child has the values as its own variables.
        super().__init__("workbench.judges.plugin_child", f"the judge {judge}", environment, scrub)

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt.

        Raises:
            JudgeCallError: There is no answer.
        """
        call = {"question": asdict(question), "options": asdict(options), "sample": sample}
        payload = {"judge": self._judge, "environment": self._environment, **call}
        return Answer(**await self.call(payload))


class Judges:
    """The child's end: the judges that were used so far."""

    def __init__(self) -> None:
        self._answerers: dict[str, Answerer] = {}

    async def answer(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Let the judge make one attempt, and return its answer as JSON data.

        Raises:
            JudgeCallError: There is no answer. Any exception of a plugin becomes such an error.
        """
        options = JudgeOptions(**payload["options"])
        try:
            answerer = self._answerers.get(payload["judge"]) or self._connect(payload, options.model)
            await answerer.ready()
            given = await answerer.answer(Question(**payload["question"]), options, payload["sample"])
        except JudgeCallError:
            raise
        except (NotAvailableError, BrokenExtensionError) as error:
            raise JudgeCallError("raised", str(error), final=True) from None
        except (Exception, SystemExit) as error:
            raise JudgeCallError("raised", f"{payload['judge']} raised {type(error).__name__}: {error}") from None
        if not isinstance(given, Answer):
            message = f"{payload['judge']} returned {type(given).__name__}, not an Answer"
            raise JudgeCallError("unreadable", message)
        return asdict(given)

    def _connect(self, payload: dict[str, Any], model: str) -> Answerer:
        environment = JudgeEnvironment(**{**payload["environment"], "values": dict(os.environ)})
        # The parent removes keys from messages.
        to = Connection(model, environment, lambda text: text, lambda: Functions(environment))
        answerer: Answerer = resolve(JUDGES.load(payload["judge"]).connect)(to)
        self._answerers[payload["judge"]] = answerer
        return answerer


if __name__ == "__main__":
    run_child(Judges().answer)
