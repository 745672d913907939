"""A scripted stand-in for the Gemini API and for Gemini on Vertex, for the real google-genai client.

In a test:

    with ScriptedGemini(lambda asked: said("yes")) as server:
        environment = {"GOOGLE_API_KEY": "…", "GOOGLE_GEMINI_BASE_URL": server.url}

From outside, for whole programs:

    python -m tests.services.scripted_gemini --port-file F --script FILE [--log FILE]

`FILE` is a JSON list of rules, or Python with a function `answer(asked)`. The first rule that fits answers:
`{"contains": text or list, "lacks": text or list, "last": text or list, "times": n,
  "text": …, "call": {"name", "args"}, "fault": one of FAULTS, "latency": seconds, "retry_after": text, "status": n}`;
`last` looks only at the newest content. Where no rule fits: 400. With `--log` each request is appended as a JSON line.

The model's version in each reply starts with SCRIPTED, so that every screen that shows it says so.
"""

import argparse
import email.utils
import importlib.util
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.services.loopback import LoopbackServer, Request, Response

_PATH = re.compile(
    r"^/(?:v1|v1beta|v1beta1)/(?:projects/[^/]+/locations/[^/]+/publishers/google/)?models/([^/:]+)"
    r":(generateContent|streamGenerateContent)(?:\?.*)?$"
)


@dataclass(frozen=True)
class Asked:
    """One request to a model. `number` counts from 1."""

    request: Request
    model: str
    stream: bool
    number: int

    @property
    def contents(self) -> list[dict[str, Any]]:
        return list(self.request.body.get("contents") or [])

    @property
    def prompt(self) -> str:
        """Whole prompt as one text: system instruction, then contents, with calls and results as JSON."""
        told = [self.request.body.get("systemInstruction") or {}, *self.contents]
        return "\n".join(filter(None, map(_words, told)))

    @property
    def last(self) -> str:
        """Newest content as text."""
        return _words(self.contents[-1]) if self.contents else ""

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.request.body.get("generationConfig") or {})


@dataclass(frozen=True)
class Reply:
    """A reply of the model: the parts of one candidate, or any other body as `raw`."""

    parts: Sequence[Mapping[str, Any]] = ()
    finish_reason: str = "STOP"
    raw: Mapping[str, Any] | None = None
    usage: Mapping[str, int] = field(
        default_factory=lambda: {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    )
    response: Response = field(default_factory=Response)

    def after(self, seconds: float) -> "Reply":
        """Return the same reply with a delay."""
        return replace(self, response=replace(self.response, latency=seconds))


def said(text: str) -> Reply:
    return Reply(({"text": text},))


def called(name: str, args: Mapping[str, Any]) -> Reply:
    return Reply(({"functionCall": {"name": name, "args": dict(args)}},))


def failed(status: int, name: str = "", message: str = "", **headers: str) -> Reply:
    """Return an error as Google's services write it. `Retry_After="2"` adds that header."""
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
    names |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
    error = {"code": status, "message": message or "SCRIPTED error", "status": name or names.get(status, "UNKNOWN")}
    spelled = {key.replace("_", "-"): value for key, value in headers.items()}
    return Reply(raw={"error": error}, response=Response(status, headers=spelled))


def quota(retry_after: str | float | None = "1") -> Reply:
    """Return status 429. A number sets the header Retry-After to a date so many seconds from now."""
    if retry_after is None:
        return failed(429)
    if not isinstance(retry_after, str):
        retry_after = email.utils.formatdate(time.time() + retry_after, usegmt=True)
    return failed(429, Retry_After=retry_after)


def quota_in_body(delay: str = "7s") -> Reply:
    """Return status 429 with the delay where Google writes it, in the error's details."""
    reply = failed(429)
    assert reply.raw is not None
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return replace(reply, raw={"error": {**reply.raw["error"], "details": details}})


def malformed() -> Reply:
    return Reply(response=Response(body=b'{"candidates": [{"content"'))


def truncated(text: str = "yes") -> Reply:
    return replace(said(text), response=Response(fault="truncated"))


def reset() -> Reply:
    return Reply(response=Response(fault="reset"))


def drip(text: str = "yes", seconds: float = 0.05) -> Reply:
    return replace(said(text), response=Response(fault="drip", drip=seconds))


def blocked(reason: str = "PROHIBITED_CONTENT") -> Reply:
    """Return a reply to a prompt that was refused."""
    return Reply(raw={"promptFeedback": {"blockReason": reason}})


def stopped(reason: str = "SAFETY") -> Reply:
    """Return a reply whose answer was refused: a candidate without content."""
    return Reply(raw={"candidates": [{"finishReason": reason, "index": 0}]})


def no_candidates() -> Reply:
    return Reply(raw={"candidates": []})


def empty() -> Reply:
    """Return a candidate with an empty text."""
    return said("")


def cut(text: str = '{"verdict": "val') -> Reply:
    return replace(said(text), finish_reason="MAX_TOKENS")


FAULTS: dict[str, Callable[[], Reply]] = {
    "quota": quota,
    "quota_in_body": quota_in_body,
    "malformed": malformed,
    "truncated": truncated,
    "reset": reset,
    "drip": drip,
    "blocked": blocked,
    "stopped": stopped,
    "no_candidates": no_candidates,
    "empty": empty,
    "cut": cut,
    "breaks_schema": lambda: said("I would rather not answer in JSON."),
}


class ScriptedGemini(LoopbackServer):
    """`answer` is a function from what was asked to a `Reply`, or a list of rules (see above)."""

    def __init__(self, answer: "Callable[[Asked], Reply] | Sequence[Mapping[str, Any]]", port: int = 0) -> None:
        super().__init__(self._respond, port)
        self.answer = answer if callable(answer) else rules(answer)
        self.asked: list[Asked] = []

    def _respond(self, request: Request) -> Response:
        found = _PATH.match(request.path)
        if found is None:
            return _written(failed(404, message=f"SCRIPTED: no such path {request.path}"), "", False)
        asked = Asked(request, found[1], found[2] == "streamGenerateContent", len(self.asked) + 1)
        self.asked.append(asked)
        return _written(self.answer(asked), asked.model, asked.stream)


def rules(listed: Sequence[Mapping[str, Any]]) -> Callable[[Asked], Reply]:
    """Return a function that follows a list of rules."""
    left = [int(rule.get("times", 1 << 30)) for rule in listed]

    def answer(asked: Asked) -> Reply:
        for number, rule in enumerate(listed):
            if left[number] and _fits(rule, asked):
                left[number] -= 1
                return _reply(rule)
        return failed(400, message="SCRIPTED: no rule fits this prompt")

    return answer


def _fits(rule: Mapping[str, Any], asked: Asked) -> bool:
    prompt, last = asked.prompt, asked.last
    return (
        all(text in prompt for text in _list(rule.get("contains")))
        and all(text in last for text in _list(rule.get("last")))
        and not any(text in prompt for text in _list(rule.get("lacks")))
    )


def _reply(rule: Mapping[str, Any]) -> Reply:
    if "call" in rule:
        reply = called(rule["call"]["name"], rule["call"].get("args", {}))
    elif rule.get("fault") == "quota":
        reply = quota(rule.get("retry_after", "1"))
    elif "fault" in rule:
        reply = FAULTS[rule["fault"]]()
    elif "status" in rule:
        reply = failed(rule["status"])
    else:
        reply = said(rule["text"])
    return reply.after(rule.get("latency", 0.0))


def _list(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


def _words(content: Mapping[str, Any]) -> str:
    return "\n".join(
        part["text"] if "text" in part else json.dumps(part, ensure_ascii=False) for part in content.get("parts") or []
    )


def _written(reply: Reply, model: str, stream: bool) -> Response:
    response = reply.response
    if response.body != b"{}":
        return response
    if reply.raw is not None:
        data = dict(reply.raw)
    else:
        content = {"role": "model", "parts": [dict(part) for part in reply.parts]}
        data = {"candidates": [{"content": content, "finishReason": reply.finish_reason, "index": 0}]}
    if "error" not in data:
        data |= {"usageMetadata": dict(reply.usage), "modelVersion": f"SCRIPTED {model}"}
    body = json.dumps(data).encode()
    if stream and response.status == 200:
        headers = {**response.headers, "Content-Type": "text/event-stream"}
        return replace(response, body=b"data: " + body + b"\r\n\r\n", headers=headers)
    return replace(response, body=body)


def _loaded(script: Path) -> "Callable[[Asked], Reply] | Sequence[Mapping[str, Any]]":
    if script.suffix == ".json":
        listed: list[Mapping[str, Any]] = json.loads(script.read_text(encoding="utf-8"))
        return listed
    spec = importlib.util.spec_from_file_location("scripted_answers", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer: Callable[[Asked], Reply] = module.answer
    return answer


def _logging(answer: Callable[[Asked], Reply], log: Path) -> Callable[[Asked], Reply]:
    def logged(asked: Asked) -> Reply:
        line = {"path": asked.request.path, "headers": dict(asked.request.headers), "body": asked.request.body}
        with log.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        return answer(asked)

    return logged


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.services.scripted_gemini")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    server = ScriptedGemini(_loaded(arguments.script), arguments.port)
    if arguments.log is not None:
        server.answer = _logging(server.answer, arguments.log)
    with server:
        waiting = arguments.port_file.with_name(arguments.port_file.name + ".new")
        waiting.write_text(str(server.port), encoding="utf-8")
        waiting.replace(arguments.port_file)
        threading.Event().wait()


if __name__ == "__main__":
    main()
