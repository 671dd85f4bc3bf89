"""Sources: where events come from, as people call it. A key names the source that it sends as."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from weir.definitions.base import DefinitionModel, as_tuple
from weir.definitions.faults import fault


def _checked_app_id(app_id: str) -> str:
    if not app_id or not app_id.isprintable() or app_id != app_id.strip():
        raise fault(
            required="an app id: printable, without white space around it",
            mend="write it as the tracker sends it in aid",
        )
    return app_id


def _checked_path(path: str) -> str:
    if not all(path.split(".")) or not path.isprintable():
        raise fault(required="a path of members, divided by dots", mend="write ts, or meta.at")
    return path


AppId = Annotated[str, Field(max_length=128), AfterValidator(_checked_app_id)]


class Source(DefinitionModel):
    """A source, named as the `weirsource` of its events.

    Attributes:
        title: What people call it.
        owner: Whom to ask about it.
        time_field: Where objects without envelope say when they happened: a member, or a path
            of members divided by dots. Without it, and where it is absent or null, `timestamp`
            and `date` say it.
        app_ids: Snowplow's trackers that name themselves so may send without a key: their
            protocol has none. Whoever knows such a name may send as this source. Of two
            tenants the one that named it first has it.
    """

    kind: Literal["source"] = "source"
    title: str = Field(default="", max_length=200)
    owner: str = Field(default="", max_length=200)
    time_field: Annotated[str, Field(max_length=256), AfterValidator(_checked_path)] | None = None
    app_ids: Annotated[tuple[AppId, ...], BeforeValidator(as_tuple), Field(max_length=100)] = ()
