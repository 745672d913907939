"""Models behind LiteLLM, named `provider/model` as in ADK, for one environment.

The library is slow to import, prints text, and accesses the network on its own. So it runs in a child process
(`litellm_child.py`) with the agent's environment. LiteLLM reads keys (`ANTHROPIC_API_KEY`) and addresses
(`OPENAI_API_BASE`, `OLLAMA_API_BASE`) there itself.
"""

from workbench.judges.base import Answer, JudgeEnvironment, JudgeOptions, Question, Scrub
from workbench.judges.child import ClientChild, require
from workbench.judges.kinds import Connection

_VARIABLES = {
    # Otherwise LiteLLM reads a `.env` file on its own.
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "CRITICAL",
}


class LiteLlm(ClientChild):
    """All models of one environment: an implementation of `workbench.judges.base.Answerer`.

    The child process starts on first use.

    Raises:
        NotAvailableError: The library is not installed.
    """

    def __init__(self, environment: JudgeEnvironment, scrub: Scrub) -> None:
        require("litellm", "LiteLLM", "litellm")
        super().__init__("workbench.judges.litellm_child", "LiteLLM", environment, scrub, _VARIABLES)

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt.

        Raises:
            JudgeCallError: There is no answer.
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
        NotAvailableError: The library is not installed.
    """
    return LiteLlm(to.environment, to.scrub)
