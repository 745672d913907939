"""Building blocks of the JSON report."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

# Not validated: an ID may contain a lone surrogate, which ASCII JSON preserves as `\ud800`.
Words = SkipValidation[str]
Object = SkipValidation[dict[str, Any]]
Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """An object of the report. Its docstrings are the descriptions in the schema."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, populate_by_name=True)
