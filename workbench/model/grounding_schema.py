"""What a recorded model event may carry besides its content: google-genai's grounding and usage metadata, as of
google-genai 2.34, modelled by hand like `content_schema` and with the same policy."""

from pydantic import with_config
from typing_extensions import TypedDict

from workbench.model.content_schema import STRICT, AnyName


@with_config(STRICT)
class ImageChunk(TypedDict, total=False):
    source_uri: str | None
    image_uri: str | None
    title: str | None
    domain: str | None


@with_config(STRICT)
class AuthorAttribution(TypedDict, total=False):
    display_name: str | None
    photo_uri: str | None
    uri: str | None


@with_config(STRICT)
class ReviewSnippet(TypedDict, total=False):
    author_attribution: AuthorAttribution | None
    flag_content_uri: str | None
    google_maps_uri: str | None
    relative_publish_time_description: str | None
    review: str | None
    review_id: str | None
    title: str | None


@with_config(STRICT)
class PlaceAnswerSources(TypedDict, total=False):
    review_snippet: list[ReviewSnippet] | None
    flag_content_uri: str | None
    review_snippets: list[ReviewSnippet] | None


@with_config(STRICT)
class MapsRoute(TypedDict, total=False):
    distance_meters: int | None
    duration: str | None
    encoded_polyline: str | None


@with_config(STRICT)
class MapsChunk(TypedDict, total=False):
    place_answer_sources: PlaceAnswerSources | None
    place_id: str | None
    text: str | None
    title: str | None
    uri: str | None
    route: MapsRoute | None


@with_config(STRICT)
class PageSpan(TypedDict, total=False):
    first_page: int | None
    last_page: int | None


@with_config(STRICT)
class RagChunk(TypedDict, total=False):
    page_span: PageSpan | None
    text: str | None
    chunk_id: str | None
    file_id: str | None


@with_config(STRICT)
class StringList(TypedDict, total=False):
    values: list[str] | None


@with_config(STRICT)
class CustomMetadata(TypedDict, total=False):
    key: str | None
    numeric_value: float | None
    string_list_value: StringList | None
    string_value: str | None


@with_config(STRICT)
class RetrievedContext(TypedDict, total=False):
    document_name: str | None
    rag_chunk: RagChunk | None
    text: str | None
    title: str | None
    uri: str | None
    custom_metadata: list[CustomMetadata] | None
    file_search_store: str | None
    page_number: int | None
    media_id: str | None


@with_config(STRICT)
class WebChunk(TypedDict, total=False):
    domain: str | None
    title: str | None
    uri: str | None


@with_config(STRICT)
class GroundingChunk(TypedDict, total=False):
    image: ImageChunk | None
    maps: MapsChunk | None
    retrieved_context: RetrievedContext | None
    web: WebChunk | None


@with_config(STRICT)
class Segment(TypedDict, total=False):
    start_index: int | None
    end_index: int | None
    part_index: int | None
    text: str | None


@with_config(STRICT)
class GroundingSupport(TypedDict, total=False):
    confidence_scores: list[float] | None
    grounding_chunk_indices: list[int] | None
    segment: Segment | None
    rendered_parts: list[int] | None


@with_config(STRICT)
class RetrievalMetadata(TypedDict, total=False):
    google_search_dynamic_retrieval_score: float | None


@with_config(STRICT)
class SearchEntryPoint(TypedDict, total=False):
    rendered_content: str | None
    sdk_blob: bytes | None


@with_config(STRICT)
class SourceFlaggingUri(TypedDict, total=False):
    flag_content_uri: str | None
    source_id: str | None


@with_config(STRICT)
class GroundingMetadata(TypedDict, total=False):
    image_search_queries: list[str] | None
    grounding_chunks: list[GroundingChunk] | None
    grounding_supports: list[GroundingSupport] | None
    retrieval_metadata: RetrievalMetadata | None
    search_entry_point: SearchEntryPoint | None
    web_search_queries: list[str] | None
    google_maps_widget_context_token: str | None
    retrieval_queries: list[str] | None
    source_flagging_uris: list[SourceFlaggingUri] | None


@with_config(STRICT)
class ModalityTokenCount(TypedDict, total=False):
    modality: AnyName | None
    token_count: int | None


@with_config(STRICT)
class UsageMetadata(TypedDict, total=False):
    cache_tokens_details: list[ModalityTokenCount] | None
    cached_content_token_count: int | None
    candidates_token_count: int | None
    candidates_tokens_details: list[ModalityTokenCount] | None
    prompt_token_count: int | None
    prompt_tokens_details: list[ModalityTokenCount] | None
    thoughts_token_count: int | None
    tool_use_prompt_token_count: int | None
    tool_use_prompt_tokens_details: list[ModalityTokenCount] | None
    total_token_count: int | None
    traffic_type: AnyName | None
