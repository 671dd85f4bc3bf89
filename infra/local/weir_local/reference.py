"""Writes what members definitions have: `python -m weir_local.reference docs/reference.md`.

What a member takes comes from the schema that checks it, what it means from the docstring of
its model. A test compares the page with both, and runs each example through the check.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import AfterValidator, BaseModel, PlainSerializer
from pydantic.fields import FieldInfo
from weir.definitions.base import DefinitionModel
from weir.definitions.conditions import Condition
from weir.definitions.durations import format_duration
from weir.definitions.kinds import KINDS
from weir.definitions.metric import RESOLUTIONS_MS, checked_resolution
from weir.definitions.rule import FEW_EVENTS
from weir.definitions.silence import instant_text

HEAD: Final = """# Reference of definitions

Every kind of definition with all of its members. This page is made from the schema that
checks definitions (`python -m weir_local.reference docs/reference.md`);
[definitions.md](definitions.md) explains how they work, and has the language of `where` and
`value`. A duration is written `10s`, `5m`, `24h`, `7d` or `1m30s`, an instant as ISO 8601 with
its zone. A name is `a-z` first, then `a-z 0-9 _`, at most 64. What is not in a table is refused
(`unknown_field`).
"""
EXAMPLES: Final = {
    "metric": """kind: metric
name: order_value
description: What customers pay, by country.
events: {type: shop.order, source: web}
where: "data.total > 0"
value: data.total
unit: €
by: [data.country]
aggregates: [count, sum, avg, p50, p95]
resolution: 10s
keep: {10s: 24h, 1m: 7d, 1h: 90d}
allowed_lateness: 2m
max_series: 300
""",
    "rule": """kind: rule
name: dear_orders
metric: order_value
aggregate: p95
window: {length: 5m, step: 30s}
by: [country]
where: "country in ('NZ', 'AU')"
above: 400
for: 2m
recover: 350
severity: high
message: "p95 {value} {unit} > {limit} in {country}"
route: {channels: [oncall], repeat: 4h}
""",
    "channel": """kind: channel
name: oncall
webhook: {url: "https://hooks.example.com/weir", secret: "secret://oncall"}
follow: all
heartbeat: 1m
""",
    "silence": """kind: silence
name: deploy
rule: dear_orders
where: "country = 'NZ'"
until: 2027-01-31T18:00:00Z
reason: new release
""",
    "board": """kind: board
name: shop
title: Shop
tiles:
  - {type: number, title: Orders, size: S, metric: order_value, aggregate: rate, window: 1m}
  - {type: chart, size: L, metric: order_value, aggregates: [p50, p95], by: [country]}
  - {type: note, text: The checkout team is in channel 7.}
""",
    "source": """kind: source
name: web
title: The web shop
owner: shop@example.com
""",
}
"""Kind -> a definition that shows most of its members."""
OF_THE_API: Final = {
    "key": "Keys are made by `POST /api/v1/keys`, which shows a key once; only its hash is stored.",
    "job": "Jobs are asked for by `POST /api/v1/jobs`, or by the command line ([cli.md](cli.md)).",
}
"""Kind -> how it is written, where that is not as a definition."""
HUGE: Final = 1e99
"""A limit beyond this is one of the machine: nobody meets it."""
_ENTRY: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*)$")


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    told: set[type[BaseModel]] = set()
    for kind, model in KINDS.items():
        parts.append(f"## {kind}\n\n{_about(model)}\n")
        if kind in OF_THE_API:
            parts.append(f"{OF_THE_API[kind]}\n")
        # What several kinds have stands where it comes first; the others link there.
        fresh = [one for one in inner_models(model) if one not in told]
        told |= set(fresh)
        parts += [_table(model), *(_section(one) for one in fresh)]
        if kind in EXAMPLES:
            parts.append(f"```yaml\n{EXAMPLES[kind]}```\n")
    return "\n".join(parts)


def inner_models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the models that members of a model hold, each once, in the order of its members."""
    found: dict[type[BaseModel], None] = {}
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            found |= dict.fromkeys((inner, *inner_models(inner)))
    return list(found)


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return what the docstrings of a model and its bases say of each attribute."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, BaseModel):
            found |= _attributes(inspect.cleandoc(one.__dict__.get("__doc__") or ""))
    return found


def _attributes(docstring: str) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    for line in docstring.partition("Attributes:\n")[2].splitlines():
        entry = _ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, entry[2])
        elif names and line.strip():
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def _fixed(field: FieldInfo) -> str:
    return "Always this." if get_origin(field.annotation) is Literal else ""


def _about(model: type[BaseModel]) -> str:
    paragraphs = inspect.cleandoc(model.__doc__ or "").partition("Attributes:")[0]
    return re.sub(r"\s+", " ", paragraphs).strip()


def _section(model: type[BaseModel]) -> str:
    return f"### {_title(model)}\n\n{_about(model)}\n\n{_table(model)}"


def _title(model: type[BaseModel]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__).capitalize()


def _table(model: type[BaseModel]) -> str:
    said = meanings(model)
    rows = ["| member | takes | left out | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        meaning = re.sub(r"^\(`\w+`\) ", "", said.get(name, _fixed(field))).replace(
            "None", "left out"
        )
        cells = (f"`{field.alias or name}`", _takes(field), _left_out(model, name, field), meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


# ── what a member takes ─────────────────────────────────────────────────────


def _takes(field: FieldInfo) -> str:
    found = _type(field.annotation, tuple(field.metadata))
    return f"{found}, or a text" if field.annotation == tuple[Condition, ...] else found


def _type(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    for one in metadata:
        if isinstance(one, AfterValidator) and one.func in _ONE_OF:
            return " or ".join(f"`{value}`" for value in _ONE_OF[one.func])
    for one in metadata:
        if isinstance(one, PlainSerializer) and one.func in _WRITTEN:
            return _WRITTEN[one.func] + _bounds(metadata, _WRITTEN[one.func])
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _type(inner, (*more, *metadata))
    name = _plain(annotation)
    return name + _bounds(metadata, name)


def _plain(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(one) for one in inner if one is not type(None)))
    if origin is tuple:
        listed = [_type(one) for one in inner if one is not Ellipsis]
        return f"list of {listed[0]}" if Ellipsis in inner else f"[{', '.join(listed)}]"
    if origin is dict:
        return " → ".join(_type(one) for one in inner)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        title = _title(annotation)
        return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"
    return _NAMES.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _bounds(metadata: tuple[Any, ...], name: str) -> str:
    """Return the limits of a value in words."""
    found = []
    is_length = name in _WRITTEN.values()
    for one in _single(metadata):
        if isinstance(one, annotated_types.Ge):
            found += [f"at least {_shown(one.ge, is_length)}"] if _is_met(one.ge) else []
        elif isinstance(one, annotated_types.Le) and _is_met(one.le):
            found.append(f"at most {_shown(one.le, is_length)}")
        elif isinstance(one, annotated_types.MinLen) and one.min_length == 1:
            found.append("not empty")
        elif isinstance(one, annotated_types.MaxLen):
            unit = "characters" if name == "text" else "items"
            found.append(f"at most {one.max_length} {unit}")
    return f", {', '.join(found)}" if found else ""


def _is_met(limit: Any) -> bool:
    return bool(abs(limit) < HUGE)


def _single(metadata: tuple[Any, ...]) -> Iterator[Any]:
    for one in metadata:
        if isinstance(one, FieldInfo):
            yield from one.metadata
        else:
            yield one


def _shown(value: Any, is_length: bool) -> str:
    return format_duration(value) if is_length else f"{value:,}"


def _left_out(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    filled = FILLED.get((model.__name__, name))
    if filled or field.is_required():
        return filled or "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel) or value in ((), {}, "", None):
        return "its defaults" if isinstance(value, BaseModel) else "none"
    if _is_length(field):
        return f"`{format_duration(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _is_length(field: FieldInfo) -> bool:
    """Tell whether a member is written as a duration, whichever it may be."""
    return any(
        isinstance(one, PlainSerializer) and one.func is format_duration for one in field.metadata
    )


FILLED: Final = {
    ("Metric", "aggregates"): "`count, rate`; with a value `count, avg, min, max`",
    ("Metric", "keep"): "`1s: 6h`, `10s: 24h`, `1m: 7d`, `1h: 90d`, from the resolution on",
    ("Rule", "aggregate"): "required; not for a signal of Weir itself",
    ("Rule", "window"): "required; not for a signal of Weir itself",
    ("Rule", "min_events"): f"`{FEW_EVENTS}` for a percentile, else `0`",
}
"""What the check fills in before it asks for it, and before a default of the schema."""
_ONE_OF: Final[dict[Any, list[str]]] = {
    checked_resolution: [format_duration(one) for one in RESOLUTIONS_MS]
}
"""What takes some durations only -> which."""
_WRITTEN: Final[dict[Any, str]] = {format_duration: "duration", instant_text: "instant"}
_NAMES: Final[dict[Any, str]] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Any: "text or list of text",
}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [] if issubclass(annotation, DefinitionModel) else [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def main() -> int:
    """Write the page; return the exit code."""
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
