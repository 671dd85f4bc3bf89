"""From the text of a definition to plain values: YAML 1.2 or JSON, without surprises.

Refused are repeated names, anchors and aliases (a few lines of them grow into
gigabytes), tags, and texts that are large or deep.
"""

from __future__ import annotations

import io
import json
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

from weir.problems import ProblemError, Reason, echo

MAX_BYTES: Final = 65_536
MAX_DEPTH: Final = 20


def parse_text(text: str) -> dict[str, Any]:
    """Return the one definition that a text holds.

    Raises:
        ProblemError: 422 `definition_invalid`, with line and column.
    """
    found = parse_texts(text)
    if len(found) != 1:
        raise unreadable(
            required=f"hold one definition, holds {len(found)}", mend="send one at a time"
        )
    return found[0]


def parse_texts(text: str) -> list[dict[str, Any]]:
    """Return the definitions of a text, in YAML separated by `---`.

    Raises:
        ProblemError: 422 `definition_invalid`, with line and column.
    """
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise unreadable(required=f"have at most {MAX_BYTES} bytes", mend="split it")
    _check_brackets(text)
    parsed = _from_json(text) if text.lstrip().startswith("{") else _from_yaml(text)
    for one in parsed:
        if not isinstance(one, dict) or not all(isinstance(name, str) for name in one):
            raise unreadable(required="be an object with names", mend="begin with kind: metric")
    return parsed


def unreadable(*, required: str, mend: str) -> ProblemError:
    """Return the refusal of a text that is no definition at all."""
    error = {"pointer": "", "required": required, "got": "", "mend": mend}
    message = f"definition must {required}; {mend}"
    return ProblemError(422, Reason.DEFINITION_INVALID, message, (error,))


def _from_json(text: str) -> list[Any]:
    try:
        return [json.loads(text, object_pairs_hook=_once)]
    except json.JSONDecodeError:
        # YAML written in braces, whose error also says more.
        return _from_yaml(text)
    except RecursionError:
        raise unreadable(
            required=f"be at most {MAX_DEPTH} levels deep", mend="flatten it"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise unreadable(required=f'name "{echo(twice)}" once', mend="remove one of the two")
    return found


def _from_yaml(text: str) -> list[Any]:
    try:
        _check_events(text)
        return list(YAML(typ="safe", pure=True).load_all(text))
    except DuplicateKeyError as error:
        raise unreadable(
            required=f"name each member once{_line(error)}", mend="remove one of the two"
        ) from None
    except YAMLError as error:
        what = str(getattr(error, "problem", "") or "is no YAML")
        raise unreadable(
            required=f"be YAML or JSON{_line(error)}: {echo(what)}", mend="mend that line"
        ) from None
    except ValueError as error:
        raise unreadable(required=f"be YAML or JSON: {echo(str(error))}", mend="mend it") from None


def _check_brackets(text: str) -> None:
    # ruamel takes seconds for a thousand brackets in a row before it tells of the first.
    nested = 0
    for sign in text:
        nested = max(0, nested + (sign in "[{") - (sign in "]}"))
        if nested > MAX_DEPTH:
            raise unreadable(required=f"be at most {MAX_DEPTH} levels deep", mend="flatten it")


def _check_events(text: str) -> None:
    nested = 0
    for event in YAML(typ="safe", pure=True).parse(io.StringIO(text)):
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            raise unreadable(required=f"have no anchors{_at(event)}", mend="write the value out")
        if isinstance(event, NodeEvent) and getattr(event, "tag", None):
            raise unreadable(required=f"have no tags{_at(event)}", mend="write the plain value")
        nested += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if nested > MAX_DEPTH:
            raise unreadable(required=f"be at most {MAX_DEPTH} levels deep", mend="flatten it")


def _line(error: YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    return "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"


def _at(event: Any) -> str:
    mark = event.start_mark
    return "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
