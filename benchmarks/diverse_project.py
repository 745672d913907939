"""A project whose cases show all that a run can bring back: for comparing runs on other machines with those here.

`studio` is a google-adk agent with a scripted model, tools, a sub-agent, state, callbacks, session input and artifacts.
`values` has answers of tools that are hard to carry, `troubles` fails in all ways, and of `broken_…` the import fails.
Judges, a metric and a simulated user name the host that they run on. Everything is deterministic.
"""

import base64
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "sample_agents"

STUDIO = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import ToolContext
from google.genai import types


async def mix(first: str, second: str, tool_context: ToolContext) -> dict:
    '''Mixes two colours.'''
    print(f"mixing {first} and {second} – grün")
    mixed = tool_context.state.get("mixed", 0) + 1
    tool_context.state["mixed"] = mixed
    return {"colour": f"{first}-{second}", "mixed": mixed, "warmth": 0.1 + 0.2}


async def sketch(title: str, tool_context: ToolContext) -> dict:
    '''Draws, and keeps the sketch.'''
    part = types.Part.from_bytes(data=title.encode() + bytes(range(256)), mime_type="image/png")
    version = await tool_context.save_artifact(f"{title}.png", part)
    loaded = await tool_context.load_artifact(f"{title}.png")
    names = await tool_context.list_artifacts()
    return {"version": version, "bytes": len(loaded.inline_data.data), "names": names}


def frame(width: float, tool_context: ToolContext) -> dict:
    '''Makes a frame.'''
    tool_context.state["framed"] = True
    return {"frame": f"{width:.2f} m", "for": tool_context.state.get("customer", "nobody")}


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        asked = [c.parts[0].text for c in llm_request.contents if c.role == "user" and c.parts[0].text]
        asked = [text for text in asked if not text.startswith("For context")][-1]
        last = llm_request.contents[-1].parts[-1]
        done = last.function_response
        tools = set(llm_request.tools_dict)
        if done is None and "transfer_to_agent" in tools and "frame" in asked and "frame" not in tools:
            parts = [types.Part(text="The framer knows."), call("transfer_to_agent", agent_name="framer")]
        elif "frame" in tools and (done is None or done.name == "transfer_to_agent"):
            parts = [call("frame", width=1.255)]
        elif done is None and "both" in asked:
            parts = [types.Part(text="Two at once…"), call("mix", first="rot", second="blau"),
                     call("mix", first="gelb", second="weiß")]
        elif done is None and "mix" in asked:
            parts = [call("mix", first="rot", second="blau")]
        elif done is None and "sketch" in asked:
            parts = [types.Part(text="I think…", thought=True), types.Part(text="Let me draw."),
                     call("sketch", title="Frühling")]
        elif done is not None and done.name == "sketch" and done.response["version"] == 0 and "twice" in asked:
            parts = [call("sketch", title="Frühling")]
        else:
            told = str(done.response if done else len(llm_request.contents))
            system = str(llm_request.config.system_instruction)[:300]
            parts = [types.Part(text=f"Done: {told}. I was told: {system}")]
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=11, candidates_token_count=7, total_token_count=18
        )
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


def count(callback_context, llm_request):
    callback_context.state["asked"] = callback_context.state.get("asked", 0) + 1


def stamp(tool, args, tool_context, tool_response):
    return {**(tool_response or {}), "stamped": tool.name}


def sign(callback_context):
    if callback_context.state.get("sign"):
        return types.Content(role="model", parts=[types.Part(text="Signed: " + callback_context.state["sign"])])


framer = LlmAgent(name="framer", model=Scripted(), description="Makes frames.", instruction="Frame.", tools=[frame])
root_agent = LlmAgent(
    name="studio",
    model=Scripted(),
    instruction="You paint for {customer?}. Asked {asked?} times.",
    tools=[mix, sketch],
    sub_agents=[framer],
    before_model_callback=count,
    after_tool_callback=stamp,
    after_agent_callback=sign,
    output_key="latest",
)
"""
VALUES = """
import datetime, decimal
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

FOUND = {
    "floats": [0.1 + 0.2, 1e308, 5e-324, -0.0, 1e16, 123456789.123456789, 1.0, 1e-7],
    "odd_floats": [float("nan"), float("inf"), -float("inf")],
    "integers": [2**53 + 1, 2**64, -(2**70), 10**30, True, False],
    "huge_integer": 7**6000,
    "bytes": {"raw": b"\\x00\\xff\\xfe text", "many": bytes(range(256)), "all": bytearray(b"abc")},
    "text": ["Größe ☃ 𝄞 \\u202e\\u200b\\x00\\x1b[31m", "e\\u0301 é", "\\r\\n\\t\\u2028", {"ключ": "値", "": "no key"}],
    "surrogates": ["\\ud83d", "a\\udcffb", "\\ud83d\\ude00"],
    "nothing": None,
    "kinds": {"tuple": (1, 2), "when": datetime.date(2026, 1, 2), "money": decimal.Decimal("1.10"), 5: "number key"},
    "set": {"only"},
    "object": types.Part(text="a part"),
    "long": "lång " * 60_000,
    "deep": None,
    "error": {"error": "not today"},
    "list": [{"a": 1}, {"b": [None, [], {}]}],
}
for _ in range(60):
    FOUND["deep"] = {"in": FOUND["deep"]}


def look_up(what: str):
    '''Returns the value.'''
    return FOUND[what]


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        asked = llm_request.contents[0].parts[0].text
        last = llm_request.contents[-1].parts[-1].function_response
        if last is None:
            args = {"what": asked}
            part = types.Part(function_call=types.FunctionCall(name="look_up", args=args))
        else:
            part = types.Part(text=f"{asked}: {str(last.response)[:2000]}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


root_agent = LlmAgent(name="values", model=Scripted(), instruction="Look it up.", tools=[look_up])
"""
PLAIN = """
import asyncio, datetime, locale, os, signal, sys, time
from pathlib import Path

from . import deeper

HERE = Path(__file__).parent


async def root_agent(message, session):
    word = message.split()[0]
    if word == "values":
        values = [0.1 + 0.2, -0.0, 1e308, 2**64, -(2**70), "Größe ☃ 𝄞", "\\ud83d", {"ключ": [None, True]}]
        yield {"tool_call": {"name": "echo", "args": {"values": values}}}
        yield {"tool_response": {"name": "echo", "response": {"values": values}}}
        yield {"text": "thinking", "author": "helper"}
        yield {"usage": {"input_tokens": 10, "output_tokens": 2}}
        yield "é\\ud83d ☃ \\x00 \\x1b[1m"
    elif word == "surroundings":
        names = ("STUDIO_DOTENV", "EQUAL_VALUE", "PYTHONHASHSEED")
        found = [sys.flags.utf8_mode, sys.getfilesystemencoding(), sys.stdout.encoding, sys.stdout.errors,
                 locale.getpreferredencoding(False), time.strftime("%A %x", time.gmtime(0)),
                 sys.flags.hash_randomization, os.path.relpath(os.environ["STUDIO_VALUE"], HERE),
                 *map(os.environ.get, names)]
        yield repr(found)
    elif word == "zone":
        when = datetime.datetime.fromtimestamp(1_700_000_000)
        yield f"{when} {time.tzname}"
    elif word == "files":
        names = sorted(path.name for path in HERE.iterdir() if not path.name.startswith(("__pycache__", ".env")))
        text = Path("troubles/größe.txt").read_text()
        yield f"{names} {text} {os.path.relpath(Path.cwd(), HERE)} {os.access(HERE / 'tool.sh', os.X_OK)}"
        yield str((HERE / "link.txt").read_text()) + str((HERE / "crlf.txt").read_bytes())
    elif word == "modules":
        yield f"{__name__} {deeper.__name__} {os.path.relpath(deeper.__file__, HERE)}"
    elif word == "path":
        yield f"I am in {HERE} and the root is {Path.cwd()}"
    elif word == "prints":
        print("out: größe ☃", flush=True)
        print("err: \\udcff lone", file=sys.stderr)
        os.write(1, b"raw \\xff\\xfe bytes\\n")
        sys.stdout.write("no end of line")
        print("\\x1b[31mred", "a" * 5000)
        print(f"{HERE}/agent.py")
        yield "printed"
    elif word == "empty":
        yield ""
    elif word == "none":
        pass
    elif word == "raise":
        deeper.fail(ValueError("schade ☃ \\ud83d"))
    elif word == "path_error":
        deeper.fail(RuntimeError(f"cannot use {HERE}/settings.toml"))
    elif word == "missing_file":
        (HERE / "missing.txt").read_text()
    elif word == "chained":
        try:
            deeper.fail(KeyError("inner"))
        except KeyError as error:
            raise RuntimeError("outer") from error
    elif word == "group":
        raise ExceptionGroup("several", [ValueError("one"), OSError(2, "no such thing", str(HERE / "x"))])
    elif word == "noted":
        error = ValueError("with a note")
        error.add_note(f"see {HERE}/README")
        raise error
    elif word == "late":
        yield "first part"
        yield {"tool_call": {"name": "echo", "args": {}}}
        deeper.fail(LookupError("after an answer"))
    elif word == "recursion":
        deeper.again()
    elif word == "syntax":
        compile("a b", str(HERE / "generated.py"), "exec")
    elif word == "exits":
        sys.exit("I leave")
    elif word == "interrupt":
        raise KeyboardInterrupt
    elif word == "hard_exit":
        os._exit(7)
    elif word == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif word == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "hangs":
        deeper.hang()
    elif word == "hangs_async":
        await deeper.wait()
    elif word == "too_large":
        yield "x" * (17 << 20)
    elif word == "flood":
        for _ in range(3000):
            print("y" * 8192)
        yield "flooded"
    elif word == "wrong_item":
        yield {"what": HERE}
    elif word == "asks":
        yield input("name? ")
    else:
        yield f"{message} {session.app_name} {session.user_id} {session.id} {session.state} {len(session.history)}"
"""
DEEPER = """
import asyncio, time


def fail(error):
    raise error


def again():
    again()


def hang():
    time.sleep(1000)


async def wait():
    await asyncio.sleep(1000)
"""
PLAIN_CASES = (
    *("values", "surroundings", "zone", "files", "modules", "prints", "empty", "none", "raise", "path_error"),
    *("missing_file", "chained", "group", "noted", "late", "recursion", "syntax", "exits", "interrupt", "hard_exit"),
    *("signal", "killed", "hangs", "hangs_async", "too_large", "flood", "wrong_item", "asks", "hello", "path"),
)
HELPERS = """
import socket
from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult


def judge(question):
    data = question["data"]
    verdict = "valid" if str(data.get("response", "")).startswith("Done") else "invalid"
    return {"reasoning": f"compared on {socket.gethostname()} – gründlich ☃", "verdict": verdict}


def brief(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    print("brief on", socket.gethostname())
    results = []
    for invocation in actual_invocations:
        text = "".join(part.text or "" for part in invocation.final_response.parts)
        score = 1 / (1 + len(text) / 7)
        results.append(PerInvocationResult(actual_invocation=invocation, score=score, eval_status=EvalStatus.PASSED))
    return EvaluationResult(
        overall_score=min(result.score for result in results),
        overall_eval_status=EvalStatus.PASSED,
        per_invocation_results=results,
    )


def user(question):
    history = question["data"]["history"]
    turn = sum(line["role"] == "user" for line in history)
    lines = ["", f"mix, says {socket.gethostname()}", "Now both ☃", "frame it"]
    return lines[turn] if turn < len(lines) else question["data"]["stop_signal"]
"""
BROKEN = {
    "raises": "from pathlib import Path\n\nraise RuntimeError(f'no settings at {Path(__file__).parent} ☃')\n",
    "syntax": "root_agent = = 3\n",
    "module": "import nothing_of_this_name\n",
    "exits": "import sys\n\nsys.exit(3)\n",
    "dies": "import os\n\nos._exit(5)\n",
    "kind": "",
    "prints": "print('größe ☃')\nimport sys\nsys.stderr.write('err')\n1 / 0\n",
}
_LOCAL = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.6}
_JUDGE = {"judge_model": "python:studio.helpers:judge", "num_samples": 1}


def write_samples(root: Path) -> None:
    """Write the samples as a project."""
    (root / ".workbench").mkdir(parents=True)
    shutil.copytree(SAMPLES, root / "sample_agents", ignore=shutil.ignore_patterns("__pycache__", ".workbench"))


def write_project(root: Path) -> None:
    """Write the project."""
    (root / ".workbench").mkdir(parents=True)
    _agent(root / "studio", STUDIO, _LOCAL)
    (root / "studio/helpers.py").write_text(HELPERS, encoding="utf-8")
    state = {"customer": "Frau Grün", "count": 2**60, "rate": 0.1, "nested": {"ü": [1, None, True]}}
    painted = [
        _case("mix", ["mix please"], "Done"),
        _case("both", ["both, please", "sketch it twice"], "Done: colour", state=state),
        _case("sketch", ["sketch a tree", "and mix", "sketch twice"], "no idea"),
        _case("frame", ["frame it", "and now?"], "Done", state=state),
        _case("signed", ["mix", "frame"], "Signed: S.", state={"sign": "S. ☃"}),
        _case("picture", ["mix what you see"], "Done", picture=True),
    ]
    _evalset(root / "studio/paint.evalset.json", painted)
    (root / "studio/judged").mkdir()
    _evalset(root / "studio/judged/judged.evalset.json", painted[:3])
    criteria = {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": _JUDGE}, "brief": 0.1}
    metrics = {"brief": {"code_config": {"name": "studio.helpers.brief"}}}
    _config(root / "studio/judged", criteria, custom_metrics=metrics)
    (root / "studio/simulated").mkdir()
    scenario = {"starting_prompt": "Hello ☃", "conversation_plan": "Mix, then both, then a frame."}
    cases = [{"eval_id": f"played_{number}", "conversation_scenario": scenario} for number in range(3)]
    _evalset(root / "studio/simulated/played.evalset.json", cases)
    simulator = {"model": "python:studio.helpers:user", "max_allowed_invocations": 5}
    _config(root / "studio/simulated", {"brief": 0.1}, custom_metrics=metrics, user_simulator_config=simulator)
    _agent(root / "values", VALUES, {"response_match_score": 0.1})
    names = ["floats", "odd_floats", "integers", "huge_integer", "bytes", "text", "surrogates", "nothing", "kinds"]
    names += ["set", "object", "long", "deep", "error", "list", "unknown"]
    _evalset(root / "values/values.evalset.json", [_case(name, [name], f"{name}: result") for name in names])
    _troubles(root / "troubles")
    for name, source in BROKEN.items():
        _agent(root / f"broken_{name}", f"{source}root_agent = None\n", _LOCAL)
        _evalset(root / f"broken_{name}/any.evalset.json", [_case("one", ["hello"], "hello")])


def _troubles(folder: Path) -> None:
    _agent(folder, PLAIN, {"response_match_score": 0.5})
    (folder / "deeper.py").write_text(DEEPER, encoding="utf-8")
    (folder / "größe.txt").write_text("Größe ☃", encoding="utf-8")
    (folder / "crlf.txt").write_bytes(b"a\r\nb\x00\xff")
    (folder / "link.txt").symlink_to("größe.txt")
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / "tool.sh").chmod(0o755)
    (folder / ".env").write_text("STUDIO_DOTENV='größe ☃'\n", encoding="utf-8")
    session = {"app_name": "troubles", "user_id": "nutzer ☃", "session_id": "s-1", "state": {"ü": 2**60, "f": 0.1}}
    cases = [_case(name, [f"{name} now"], f"{name} now") for name in PLAIN_CASES]
    cases += [_case("three_turns", ["one", "two", "three"], "two"), _case("late_raise", ["hello", "raise"], "hello")]
    _evalset(folder / "troubles.evalset.json", [{**case, "session_input": session} for case in cases])


def _agent(folder: Path, source: str, criteria: dict[str, float]) -> None:
    folder.mkdir()
    (folder / "agent.py").write_text(source, encoding="utf-8")
    (folder / "__init__.py").write_text("", encoding="utf-8")
    _config(folder, criteria)


def _config(folder: Path, criteria: object, **others: object) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": criteria, **others}), encoding="utf-8")


def _evalset(path: Path, cases: Sequence[object]) -> None:
    name = path.name.partition(".")[0]
    path.write_text(json.dumps({"eval_set_id": name, "eval_cases": cases}, ensure_ascii=False), encoding="utf-8")


def _case(
    name: str, texts: Sequence[str], answer: str, state: object = None, picture: bool = False
) -> dict[str, object]:
    turns = []
    for text in texts:
        parts: list[object] = [{"text": text}]
        if picture:
            data = base64.b64encode(bytes(range(256)) * 40).decode()
            parts.append({"inline_data": {"mime_type": "image/png", "data": data}})
        turns.append(
            {
                "user_content": {"role": "user", "parts": parts},
                "final_response": {"role": "model", "parts": [{"text": answer}]},
                "intermediate_data": {"tool_uses": [{"name": "mix", "args": {"first": "rot", "second": "blau"}}]},
            }
        )
    case: dict[str, object] = {"eval_id": name, "conversation": turns}
    if state is not None:
        case["session_input"] = {"app_name": "studio", "user_id": "someone", "state": state}
    return case
