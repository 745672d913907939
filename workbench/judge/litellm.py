"""Any model behind LiteLLM, by ADK's spelling `provider/model`, for one environment.

The library imports for seconds, prints, and asks the network on its own; it lives in a child (`litellm_child.py`) that
sees the agent's environment: keys (`ANTHROPIC_API_KEY`) and addresses (`OPENAI_API_BASE`, `OLLAMA_API_BASE`) are read
there as LiteLLM reads them.
"""

from workbench.judge.answering import Answer, Scrub
from workbench.judge.base import JudgeOptions, Question
from workbench.judge.child import ClientChild, require
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.kinds import Connection

_VARIABLES = {
    # Otherwise it reads a `.env` on its own.
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "CRITICAL",
}


class LiteLlm(ClientChild):
    """All models of one environment. Implements `workbench.judge.answering.Answerer`; the child is started when it is
    first asked.

    Raises:
        NotAvailableError: the library is not installed.
    """

    def __init__(self, environment: JudgeEnvironment, scrub: Scrub) -> None:
        require("litellm", "LiteLLM", "litellm")
        super().__init__("workbench.judge.litellm_child", "LiteLLM", environment, scrub, _VARIABLES)

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """One attempt.

        Raises:
            JudgeCallError: there is no answer.
        """
        answer = await self.call(
            {
                "model": options.model,
                "prompt": question.prompt,
                "schema": None if question.schema is None else dict(question.schema),
                "config": dict(options.config),
            }
        )
        names = ("text", "model_version", "input_tokens", "output_tokens", "cut")
        return Answer(*(answer[name] for name in names))


def connect(to: Connection) -> LiteLlm:
    """Return the answerer of an environment for models behind LiteLLM.

    Raises:
        NotAvailableError: the library is not installed.
    """
    return LiteLlm(to.environment, to.scrub)
