"""A scripted stand-in for Google's evaluation service on Vertex, for the real agentplatform client.

In a test:

    with ScriptedVertex(lambda asked: rated(1.0, "harmless")) as server:
        environment = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "GOOGLE_VERTEX_BASE_URL": server.url}

From outside, for whole programs:

    python -m tests.services.scripted_vertex --port-file F [--script FILE] [--log FILE]

`FILE` is a JSON list of rules; the first that fits answers, 1.0 where none does:
`{"contains": text in prompt, response or reference, "metric": name, "times": n, "score": number or null,
  "explanation": text, "rubrics": list of RubricVerdict, "fault": one of FAULTS, "status": n, "retry_after": text,
  "latency": seconds}`.

Every explanation starts with SCRIPTED, so that every screen that shows it says so. The definition of the metric
`coherence`, which the client fetches from Google Cloud Storage, is served too (STORAGE_EMULATOR_HOST).
"""

import argparse
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.services.loopback import LoopbackServer, Request, Response

_PATH = re.compile(r"^/v1(?:beta1)?/(?:projects/([^/]+)/locations/([^/]+)/)?:evaluateInstances$")
_STORED = re.compile(r"^/download/storage/v1/b/[^/]+/o/metrics%2Fcoherence%2Fv1\.yaml\b")
_COHERENCE = b"""
name: coherence
prompt_template: "SCRIPTED definition. How coherent is this? {prompt} {response}"
"""


@dataclass(frozen=True)
class Asked:
    """One instance to rate. `number` counts from 1; `project` is "" where a key was used."""

    request: Request
    project: str
    location: str
    number: int

    @property
    def metric(self) -> str:
        """Name of a metric of the service, or "" for one that the request defines."""
        return str((self.request.body["metrics"][0].get("predefined_metric_spec") or {}).get("metric_spec_name", ""))

    def text(self, name: str) -> str | None:
        """Return `prompt`, `response` or `reference`, or None if it is not sent."""
        given = self.request.body["instance"].get(name)
        if given is None:
            return None
        return "\n".join(part["text"] for content in given["contents"]["contents"] for part in content["parts"])

    @property
    def texts(self) -> str:
        return "\n".join(self.text(name) or "" for name in ("prompt", "response", "reference"))


def rated(score: Any, explanation: str = "as the script says", rubrics: Sequence[Mapping[str, Any]] = ()) -> Response:
    """Return ratings. `rubrics` are verdicts on rubrics made up by the service, spelled as in `RubricVerdict`."""
    result: dict[str, Any] = {"score": score, "explanation": f"SCRIPTED {explanation}"}
    if rubrics:
        result["rubricVerdicts"] = list(rubrics)
    return Response(body=json.dumps({"metricResults": [result]}).encode())


def not_rated(code: int, message: str = "no rating") -> Response:
    """Return an error instead of a result (`google.rpc.Status`)."""
    return Response(body=json.dumps({"metricResults": [{"error": {"code": code, "message": message}}]}).encode())


def failed(status: int, message: str = "SCRIPTED error", **headers: str) -> Response:
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
    names |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
    error = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
    spelled = {key.replace("_", "-"): value for key, value in headers.items()}
    return Response(status, json.dumps({"error": error}).encode(), spelled)


FAULTS: dict[str, Callable[[], Response]] = {
    "quota": lambda: failed(429, Retry_After="1"),
    "malformed": lambda: Response(body=b'{"metricResults": [{"sco'),
    "no_results": lambda: Response(body=b"{}"),
    "wrong_shape": lambda: Response(body=b'{"metricResults": [{"score": {"value": 1}}]}'),
    "list": lambda: Response(body=b"[]"),
    "truncated": lambda: replace(rated(1.0), fault="truncated"),
    "reset": lambda: Response(fault="reset"),
    "drip": lambda: replace(rated(1.0), fault="drip"),
    "error_in_result": lambda: not_rated(13),
    "quota_in_result": lambda: not_rated(8),
}


class ScriptedVertex(LoopbackServer):
    """`answer` is a function from what was asked to a `Response`, or a list of rules (see above)."""

    def __init__(self, answer: "Callable[[Asked], Response] | Sequence[Mapping[str, Any]]" = (), port: int = 0) -> None:
        super().__init__(self._respond, port)
        self.answer = answer if callable(answer) else rules(answer)
        self.asked: list[Asked] = []

    def _respond(self, request: Request) -> Response:
        if _STORED.match(request.path):
            return Response(body=_COHERENCE, headers={"Content-Type": "application/yaml"})
        found = _PATH.match(request.path)
        if found is None:
            return failed(404, f"SCRIPTED: no such path {request.path}")
        asked = Asked(request, found[1] or "", found[2] or "", len(self.asked) + 1)
        self.asked.append(asked)
        return self.answer(asked)


def rules(listed: Sequence[Mapping[str, Any]]) -> Callable[[Asked], Response]:
    """Return a function that follows a list of rules."""
    left = [int(rule.get("times", 1 << 30)) for rule in listed]

    def answer(asked: Asked) -> Response:
        for number, rule in enumerate(listed):
            fits = rule.get("contains", "") in asked.texts and rule.get("metric", asked.metric) == asked.metric
            if left[number] and fits:
                left[number] -= 1
                return replace(_response(rule), latency=rule.get("latency", 0.0))
        return rated(1.0, "nothing that a rule knows")

    return answer


def _response(rule: Mapping[str, Any]) -> Response:
    if rule.get("retry_after"):
        return failed(rule.get("status", 429), Retry_After=rule["retry_after"])
    if "fault" in rule:
        return FAULTS[rule["fault"]]()
    if "status" in rule:
        return failed(rule["status"])
    return rated(rule["score"], rule.get("explanation", "as the script says"), rule.get("rubrics", ()))


def _logging(answer: Callable[[Asked], Response], log: Path) -> Callable[[Asked], Response]:
    def logged(asked: Asked) -> Response:
        line = {"path": asked.request.path, "headers": dict(asked.request.headers), "body": asked.request.body}
        with log.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        return answer(asked)

    return logged


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.services.scripted_vertex")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    listed = json.loads(arguments.script.read_text(encoding="utf-8")) if arguments.script else []
    server = ScriptedVertex(listed, arguments.port)
    if arguments.log is not None:
        server.answer = _logging(server.answer, arguments.log)
    with server:
        waiting = arguments.port_file.with_name(arguments.port_file.name + ".new")
        waiting.write_text(str(server.port), encoding="utf-8")
        waiting.replace(arguments.port_file)
        threading.Event().wait()


if __name__ == "__main__":
    main()
