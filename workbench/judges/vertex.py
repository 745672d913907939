"""Google's evaluation service (Vertex AI) for one environment, used by `safety_v1` and the `multi_turn_…` criteria.

Its client takes seconds and hundreds of megabytes to import, so it runs in a child process (`vertex_child.py`). The
client ignores `GOOGLE_VERTEX_BASE_URL`; this module reads it and passes it on.
"""

from collections.abc import Mapping
from typing import Any

from workbench.judges.base import JudgeEnvironment, NotAvailableError, Rating, Scrub
from workbench.judges.child import ClientChild, require
from workbench.judges.google_access import GoogleAccess, checked_address, find_credentials

SERVICE_NAME = "Google's evaluation service"
_PACKAGES = ("agentplatform", "pandas", "tqdm")
_HINT = (
    "set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION in <agent>/.env (and credentials: "
    "gcloud auth application-default login), or GOOGLE_API_KEY"
)


def vertex_access(values: Mapping[str, str]) -> GoogleAccess:
    """Return the access to the service by ADK's rules (`evaluation/vertex_ai_eval_facade.py`).

    GOOGLE_API_KEY comes first; without it, a project is used.

    Raises:
        NotAvailableError: A key or project, credentials or the extra is missing, or the base address is not safe.
    """
    for package in _PACKAGES:
        require(package, "Google's evaluation client (google-cloud-aiplatform)", "vertex")
    address = checked_address("GOOGLE_VERTEX_BASE_URL", values.get("GOOGLE_VERTEX_BASE_URL", ""))
    key = values.get("GOOGLE_API_KEY", "").strip()
    if key:
        return GoogleAccess(True, key, base_url=address)
    project = values.get("GOOGLE_CLOUD_PROJECT", "").strip()
    location = values.get("GOOGLE_CLOUD_LOCATION", "").strip()
    if not project and not location:
        raise NotAvailableError(f"{SERVICE_NAME} needs a Google Cloud project", _HINT)
    if not project or not location:
        missing = "GOOGLE_CLOUD_LOCATION" if project else "GOOGLE_CLOUD_PROJECT"
        raise NotAvailableError(f"{SERVICE_NAME} needs {missing} too", f"set {missing} in <agent>/.env")
    return GoogleAccess(True, "", project, location, address, find_credentials(SERVICE_NAME, address, values))


class Vertex(ClientChild):
    """The service for the agent of `environment`. One object rates everything, many instances at once.

    The child process starts on first use.

    Raises:
        NotAvailableError: The service cannot be used from there.
    """

    def __init__(self, environment: JudgeEnvironment, scrub: Scrub) -> None:
        access = vertex_access(environment.values)
        signed = access.credentials
        by_machine = signed is not None and not signed.file and not signed.placeholder
        # Without this the client waits for a metadata server that does not exist.
        variables = {} if by_machine else {"NO_GCE_CHECK": "true"}
        who = "Google's evaluation client"
        super().__init__("workbench.judges.vertex_child", who, environment, scrub, variables)

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> Rating:
        """Make one attempt to rate `instance`: `{"prompt", "response", "reference"}`, or `{"agents", "turns"}`.

        `metric` is a name of ADK's.

        Raises:
            JudgeCallError: There is no rating.
        """
        answer = await self.call({"metric": metric, "instance": dict(instance)})
        return Rating(answer["score"], answer["explanation"], tuple(answer["rubrics"]))
