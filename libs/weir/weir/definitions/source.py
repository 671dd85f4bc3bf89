"""Sources: where events come from, as people call it. A key names the source that it sends as."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from weir.definitions.base import DefinitionModel


class Source(DefinitionModel):
    """A source, named as the `weirsource` of its events.

    Attributes:
        title: What people call it.
        owner: Whom to ask about it.
    """

    kind: Literal["source"] = "source"
    title: str = Field(default="", max_length=200)
    owner: str = Field(default="", max_length=200)
