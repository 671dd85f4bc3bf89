"""What a client may say on the live socket, and how it is read.

Unknown members are refused by name and the socket stays open; what is not JSON, or
has no known `op`, closes it (4400), because then the two sides do not speak the
same protocol.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from weir.problems import ProblemError, Reason, echo

PROTOCOL = "weir.v1"
OPS = ("hello", "subscribe", "unsubscribe", "pace")


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Hello(_Message):
    """Opens the conversation; without `auth` the session cookie counts."""

    op: Literal["hello"]
    v: Literal[1]
    auth: Annotated[str, Field(max_length=256)] | None = None


class Position(_Message):
    """Up to where a client's answer goes."""

    epoch: Annotated[int, Field(ge=0)]
    rev: Annotated[int, Field(ge=0)]


class After(_Message):
    """Up to where a client knows alerts, or corrections: the `seq` that it was told last.

    It is -1 before any record.
    """

    seq: Annotated[int, Field(ge=-1)]


class TailFilter(_Message):
    """Which sampled events to show: all conditions must hold."""

    type: Annotated[str, Field(max_length=256)] | None = None
    where: Annotated[
        list[
            tuple[
                Annotated[str, Field(max_length=256)], Literal["=", "!=", "<", "<=", ">", ">="], Any
            ]
        ],
        Field(max_length=10),
    ] = []
    text: Annotated[str, Field(max_length=256)] | None = None


class Subscribe(_Message):
    """Asks for a query's answer, the live tail, or one of the feeds."""

    op: Literal["subscribe"]
    id: Annotated[int, Field(ge=0)]
    to: Literal["query", "tail", "alerts", "corrections", "pipeline"]
    query: dict[str, Any] | None = None
    filter: TailFilter | None = None
    position: Annotated[Position | After | None, Field(alias="from")] = None


class Unsubscribe(_Message):
    """Ends a subscription by the id that it was asked for with."""

    op: Literal["unsubscribe"]
    id: Annotated[int, Field(ge=0)]


class Pace(_Message):
    """How often the client wants updates at most; 0 is paused."""

    op: Literal["pace"]
    hz: Annotated[float, Field(ge=0, le=4, allow_inf_nan=False)]


ClientMessage = Hello | Subscribe | Unsubscribe | Pace
_CLIENT: TypeAdapter[ClientMessage] = TypeAdapter(
    Annotated[ClientMessage, Field(discriminator="op")]
)


class UnknownOpError(ValueError):
    """The frame is no message of this protocol at all."""


def read_message(body: object) -> ClientMessage:
    """Return the message in a parsed frame.

    Raises:
        UnknownOpError: If it is no object or has no known `op`.
        ProblemError: If a member is missing, unknown or has a wrong value (422).
    """
    if not isinstance(body, dict) or body.get("op") not in OPS:
        op = body.get("op") if isinstance(body, dict) else body
        msg = f'a frame must be an object with an "op" of {", ".join(OPS)}, got "{echo(str(op))}"'
        raise UnknownOpError(msg)
    try:
        return _CLIENT.validate_python(body)
    except ValidationError as error:
        raise _problem(error) from None


def _problem(error: ValidationError) -> ProblemError:
    first = error.errors()[0]
    unknown = first["type"] == "extra_forbidden"
    place = "/".join(str(part) for part in first["loc"][1:])
    errors = tuple(
        {
            "pointer": "/" + "/".join(str(part) for part in e["loc"][1:]),
            "required": e["msg"],
            "got": echo(str(e["input"])),
            "mend": "remove it" if e["type"] == "extra_forbidden" else "see asyncapi.json",
        }
        for e in error.errors()[:20]
    )
    reason = Reason.UNKNOWN_FIELD if unknown else Reason.QUERY_INVALID
    what = "is unknown" if unknown else "is invalid"
    message = f'member "{echo(place)}" of the message {what}: {first["msg"]}'
    return ProblemError(422, reason, message, errors)
