"""Child processes for client libraries that are too heavy for the scorer, or that print text.

A child uses our interpreter and the agent's environment. The child runs a function that answers payloads or raises
JudgeCallError; the parent uses `ClientChild`.
"""

import argparse
import sys
from typing import Any, NoReturn

from workbench.agents.answering_child import AnsweringChild, CallRefusedError, ChildLostError
from workbench.agents.child_process import own_python
from workbench.agents.environment import install_extra_command
from workbench.judges.base import FaultKind, JudgeCallError, JudgeEnvironment, NotAvailableError, Scrub
from workbench.worker.serving import Answer, CallFailedError, serve

_QUIET = {
    # LiteLLM fetches a list of prices during its import. Google's evaluation client imports it too.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "OPENBLAS_NUM_THREADS": "1",
}


class ClientChild:
    """The child process that runs `module` for one environment. Messages name `who` ("Google's evaluation client")."""

    def __init__(self, module: str, who: str, environment: JudgeEnvironment, scrub: Scrub, **variables: str) -> None:
        self._who = who
        self._scrub = scrub
        self._child = AnsweringChild(own_python(module, {**environment.values, **_QUIET, **variables}))

    async def ready(self) -> None:
        """Wait for the import of the client, which takes seconds. A failure is reported by the next call."""
        try:
            await self._child.start()
        except ChildLostError:
            return

    async def call(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the child's answer.

        Raises:
            JudgeCallError: The child reported a failure, has ended, or could not be started.
        """
        try:
            answer: dict[str, Any] = await self._child.call(payload)
        except CallRefusedError as refused:
            error = refused.error
            kind: FaultKind = error["kind"] if error["kind"] not in ("internal", "too_large") else "unreadable"
            raise JudgeCallError(
                kind,
                self._scrub(error["message"]),
                self._scrub(error.get("code", "")),
                error.get("retry_after"),
                bool(error.get("retryable")),
                bool(error.get("final")),
            ) from None
        except ChildLostError as lost:
            message = self._scrub(f"the process of {self._who} {lost}")
            raise JudgeCallError("connection", message, retryable=lost.began) from None
        return answer

    async def close(self) -> None:
        """End the child process."""
        await self._child.close()


def run_child(answer: Answer) -> NoReturn:
    """Answer calls until the parent disconnects, as the child's main function. The parent removes keys from errors."""

    async def tell(payload: Any) -> Any:
        try:
            return await answer(payload)
        except JudgeCallError as error:
            fields = ("kind", "message", "code", "retry_after", "retryable", "final")
            raise CallFailedError({name: getattr(error, name) for name in fields}) from None

    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    options = parser.parse_args()
    serve(options.control, options.lifeline, tell)


def require(package: str, who: str, extra: str) -> None:
    """Check, without importing it, that an optional package is installed.

    Raises:
        NotAvailableError: The package is not installed. The hint names the extra.
    """
    if not installed(package):
        raise NotAvailableError(f"{who} is not installed", install_extra_command(extra))


def installed(package: str) -> bool:
    """Return whether a child process could import `package`.

    `importlib.util.find_spec` would not find a package whose import this process has blocked, as the scorer does for
    pandas.
    """
    return any(finder.find_spec(package, None) is not None for finder in sys.meta_path)
