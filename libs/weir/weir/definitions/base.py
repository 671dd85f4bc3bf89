"""What all kinds of definition have in common."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from weir.definitions.faults import fault

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


WRITTEN: Final = {"written": True}
"""The context in which a definition is validated that is about to be written.

What was stored is read for ever. What is refused since a first version took it is refused
in this context alone, so that no stored definition becomes unreadable.
"""


def is_written(info: ValidationInfo) -> bool:
    """Tell whether what is validated is about to be written, and not read from the log."""
    return info.context is not None and info.context.get("written") is True


def checked_name(name: str) -> str:
    """Return a name of a definition as it is, if it is one.

    Raises:
        PydanticCustomError: What a name must be.
    """
    if not NAME.fullmatch(name):
        required = "a name: a-z first, then a-z, 0-9 and _, at most 64 characters"
        mended = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:64]
        mend = f'"{mended}" would do' if NAME.fullmatch(mended) else "choose another name"
        raise fault(required=required, mend=mend)
    return name


def as_tuple(value: Any) -> Any:
    """Take a list, which is what JSON and YAML have, where a model holds a tuple."""
    return tuple(value) if isinstance(value, list) else value


Name = Annotated[str, AfterValidator(checked_name)]


class Model(BaseModel):
    """A part of a definition: frozen, and refusing what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DefinitionModel(Model):
    """A checked definition; each kind has a subclass in a file of its own.

    Attributes:
        kind: Which kind it is.
        name: Unique in its tenant and kind.
        description: For people; shown where the definition is shown.
    """

    kind: str
    name: Name
    description: str = Field(default="", max_length=2_000)

    def canonical(self) -> dict[str, Any]:
        """Return the definition as JSON with every default filled in."""
        return self.model_dump(mode="json", by_alias=True)
