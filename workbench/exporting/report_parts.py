"""What the parts of the JSON report are made of."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

# Not checked while it is written: an id may hold a lone surrogate, which stays what it is (`\ud800`) in ASCII JSON.
Words = SkipValidation[str]
Object = SkipValidation[dict[str, Any]]
Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """An object of the report; its docstrings are the descriptions in the schema."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, populate_by_name=True)
