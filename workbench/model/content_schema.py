"""What ADK accepts as a message: google-genai's Content, Part and all that hangs on them, as of google-genai 2.34.

google.* is never imported by the workbench (half a second, 60 MiB), so its types stand here again, by hand, as typed
dictionaries: validating with them gives the same verdict and, as a value, the JSON object with snake_case keys and
only the keys that were set. A test compares them with the installed google-genai, field by field and document by
document.

All of them take snake_case and camelCase and reject unknown keys.
"""

from typing import Any, Literal

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

STRICT = ConfigDict(
    alias_generator=to_camel, populate_by_name=True, extra="forbid", val_json_bytes="base64", loc_by_alias=False
)

AnyName = str
"""An enumeration there. It takes every text, in any case, with no more than a Python warning for unknown ones."""


@with_config(STRICT)
class PartMediaResolution(TypedDict, total=False):
    level: AnyName | None
    num_tokens: int | None


@with_config(STRICT)
class CodeExecutionResult(TypedDict, total=False):
    outcome: AnyName | None
    output: str | None
    id: str | None


@with_config(STRICT)
class ExecutableCode(TypedDict, total=False):
    code: str | None
    language: AnyName | None
    id: str | None


@with_config(STRICT)
class FileData(TypedDict, total=False):
    display_name: str | None
    file_uri: str | None
    mime_type: str | None


@with_config(STRICT)
class PartialArg(TypedDict, total=False):
    bool_value: bool | None
    json_path: str | None
    null_value: Literal["NULL_VALUE"] | None
    number_value: float | None
    string_value: str | None
    will_continue: bool | None


@with_config(STRICT)
class FunctionCall(TypedDict, total=False):
    id: str | None
    args: dict[str, Any] | None
    name: str | None
    partial_args: list[PartialArg] | None
    will_continue: bool | None


@with_config(STRICT)
class Blob(TypedDict, total=False):
    data: bytes | None
    display_name: str | None
    mime_type: str | None


@with_config(STRICT)
class FunctionResponsePart(TypedDict, total=False):
    inline_data: Blob | None
    file_data: FileData | None
    media_processing: AnyName | None


@with_config(STRICT)
class FunctionResponse(TypedDict, total=False):
    will_continue: bool | None
    scheduling: AnyName | None
    parts: list[FunctionResponsePart] | None
    id: str | None
    name: str | None
    response: dict[str, Any] | None


@with_config(STRICT)
class VideoMetadata(TypedDict, total=False):
    end_offset: str | None
    fps: float | None
    start_offset: str | None


@with_config(STRICT)
class ToolCall(TypedDict, total=False):
    id: str | None
    tool_type: AnyName | None
    args: dict[str, Any] | None


@with_config(STRICT)
class ToolResponse(TypedDict, total=False):
    id: str | None
    tool_type: AnyName | None
    response: dict[str, Any] | None


@with_config(STRICT)
class WordInfo(TypedDict, total=False):
    word: str | None
    start_offset: str | None
    end_offset: str | None


@with_config(STRICT)
class Transcription(TypedDict, total=False):
    text: str | None
    finished: bool | None
    language_code: str | None
    speaker_label: str | None
    words: list[WordInfo] | None
    start_offset: str | None
    end_offset: str | None


@with_config(STRICT)
class SpeechMetadata(TypedDict, total=False):
    speaker: str | None
    style: str | None


@with_config(STRICT)
class Part(TypedDict, total=False):
    media_resolution: PartMediaResolution | None
    code_execution_result: CodeExecutionResult | None
    executable_code: ExecutableCode | None
    file_data: FileData | None
    function_call: FunctionCall | None
    function_response: FunctionResponse | None
    inline_data: Blob | None
    text: str | None
    thought: bool | None
    thought_signature: bytes | None
    video_metadata: VideoMetadata | None
    tool_call: ToolCall | None
    tool_response: ToolResponse | None
    part_metadata: dict[str, Any] | None
    audio_transcription: Transcription | None
    media_processing: AnyName | None
    speech_metadata: SpeechMetadata | None


@with_config(STRICT)
class Content(TypedDict, total=False):
    parts: list[Part] | None
    role: str | None
