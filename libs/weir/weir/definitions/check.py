"""The check of a definition before it may be written: one schema, errors with place and mend."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from weir.definitions.base import WRITTEN, DefinitionModel
from weir.definitions.budget import Estimate, estimate
from weir.definitions.faults import FAULT, place_in
from weir.definitions.kinds import KINDS
from weir.definitions.metric import Metric
from weir.definitions.text import parse_text, unreadable
from weir.problems import ProblemError, Reason, echo

_KIND: Final = "kind"
# Where pydantic says that the name of a member is wrong, and not its value.
_OF_NAME: Final = "[key]"


@dataclass(frozen=True, slots=True)
class Checked:
    """A definition that may be written.

    Attributes:
        model: It, typed.
        canonical: It as JSON with every default filled in: equal if and only if two
            texts mean the same.
        estimate: What it costs at most; None for kinds that cost nothing to count.
    """

    model: DefinitionModel
    canonical: str
    estimate: Estimate | None = None


def check(
    kind: str | None, name: str | None, given: str | Mapping[str, Any], *, stored: bool = False
) -> Checked:
    """Return a definition, checked; whether a tenant may have it says `quota.py`.

    Args:
        kind: What kind it must be; None: what it says itself.
        name: What it must be called; None: what it says itself.
        given: Its text, YAML or JSON, or what is in it.
        stored: It was read from the log: a version that an older release took is taken.

    Raises:
        ProblemError: 422 with up to 20 `errors`, each with `pointer`, `required`,
            `got` and `mend`, and in an expression `at` and `excerpt`.
    """
    members = parse_text(given) if isinstance(given, str) else dict(given)
    _check_unicode(members)
    members = _placed(members, kind, name)
    model_class = KINDS[members[_KIND]]
    try:
        model = model_class.model_validate(members, context=None if stored else WRITTEN)
    except ValidationError as error:
        raise _refusal(error, model_class) from None
    cost = estimate(model) if isinstance(model, Metric) else None
    canonical = json.dumps(model.canonical(), ensure_ascii=False, separators=(",", ":"))
    return Checked(model, canonical, cost)


def _check_unicode(members: Mapping[str, Any]) -> None:
    """Refuse half a surrogate pair, which YAML's escapes can give: nothing can write it down."""
    if any("\ud800" <= sign <= "\udfff" for text in _texts(members) for sign in text):
        mend = "write the character itself in place of its two escapes"
        raise unreadable(required="Unicode", got="half of a surrogate pair", mend=mend)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _texts(name)
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _placed(members: dict[str, Any], kind: str | None, name: str | None) -> dict[str, Any]:
    """Fill in kind and name from the address, and refuse a text that says another."""
    for member, wanted in ((_KIND, kind), ("name", name)):
        said = members.setdefault(member, wanted) if wanted else members.get(member)
        if wanted and said != wanted:
            mend = f"change it, or send it to the address of {echo(str(said))}"
            raise _one(member, f'"{wanted}", as in the address', said, mend)
    said = members.get(_KIND)
    if not isinstance(said, str) or said not in KINDS:
        near = difflib.get_close_matches(str(said), KINDS, n=1)
        mend = f'did you mean "{near[0]}"?' if near else f"the kinds are {', '.join(KINDS)}"
        raise _one(_KIND, "a kind", said, mend)
    return members


def _one(member: str, required: str, got: Any, mend: str) -> ProblemError:
    error = {"pointer": f"/{member}", "required": required, "got": _shown(got), "mend": mend}
    return definition_problem([error], Reason.DEFINITION_INVALID)


def definition_problem(errors: list[dict[str, Any]], reason: Reason) -> ProblemError:
    """Return the refusal of a definition; its message is the first of the errors."""
    first = errors[0]
    got = f'"{first["got"]}"' if first["got"] else "nothing"
    message = f"{first['pointer'] or 'definition'} must be {first['required']}, got {got}"
    if first["mend"]:
        message += f"; {first['mend']}"
    return ProblemError(422, reason, message, tuple(errors))


# ── pydantic's errors in our words ──────────────────────────────────────────


def _refusal(error: ValidationError, model_class: type[DefinitionModel]) -> ProblemError:
    found = [_described(one, model_class) for one in error.errors(include_url=False)]
    reason = next((reason for _e, reason in found if reason), Reason.DEFINITION_INVALID)
    return definition_problem([described for described, _reason in found], reason)


def _described(
    one: Any, model_class: type[DefinitionModel]
) -> tuple[dict[str, Any], Reason | None]:
    pointer = "".join(f"/{_escaped(part)}" for part in one["loc"] if part != _OF_NAME)
    context = one.get("ctx") or {}
    if one["type"] == FAULT:
        place = place_in(one["input"], context)
        required, got = context["required"], context["got"]
        if place:
            at = f" (character {place['at'] + 1})"
            # Where something is missing nothing came.
            required, got = (required, got + at) if got else (required + at, "")
        got = got or ("" if place else _shown(one["input"]))
        told = {"required": required, "got": got, "mend": context["mend"], **place}
        reason = Reason(context["reason"])
        own = None if reason is Reason.DEFINITION_INVALID else reason
        return {"pointer": pointer, **told}, own
    if one["type"] == "extra_forbidden":
        name, known = str(one["loc"][-1]), _members_at(model_class, one["loc"][:-1])
        near = difflib.get_close_matches(name, known, n=1)
        mend = f'did you mean "{near[0]}"?' if near else f"the members are {', '.join(known)}"
        told = {"required": "a known member", "got": echo(name), "mend": mend}
        return {"pointer": pointer, **told}, Reason.UNKNOWN_FIELD
    if one["type"] == "missing":
        told = {"required": "given", "got": "", "mend": f"add {one['loc'][-1]}"}
        return {"pointer": pointer, **told}, None
    required = _required(one["type"], one["msg"], context)
    return {"pointer": pointer, "required": required, "got": _shown(one["input"]), "mend": ""}, None


# What pydantic says otherwise than as something that a field must be, or in Python's words.
_REQUIRED: Final = {
    "too_long": "at most {max_length} items",
    "too_short": "a list with at least {min_length}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": "a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def _required(kind: str, message: str, context: Mapping[str, Any]) -> str:
    told = _REQUIRED.get(kind)
    return told.format(**context) if told else message.removeprefix("Input should be ")


def _members_at(model_class: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """Return the members of the model at a place; those of the definition if it is unknown."""
    fields = model_class.model_fields
    for part in place:
        if isinstance(part, int):
            continue
        inner = fields[part].annotation if part in fields else None
        found = next((m for m in _models_in(inner)), None)
        if found is None:
            break
        fields = found.model_fields
    return list(fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = cast("tuple[Any, ...]", getattr(annotation, "__args__", ()))
    return [model for part in inner for model in _models_in(part)]


def _escaped(part: object) -> str:
    return echo(str(part)).replace("~", "~0").replace("/", "~1")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return echo(value)
    try:
        return echo(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__
