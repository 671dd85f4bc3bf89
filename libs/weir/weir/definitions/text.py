"""From the text of a definition to plain values: YAML 1.2 or JSON, without surprises.

Refused are repeated names, anchors and aliases (a few lines of them grow into
gigabytes), tags, and texts that are large or deep.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

from weir.problems import ProblemError, Reason, echo

MAX_BYTES: Final = 65_536
MAX_DEPTH: Final = 20
# At the start of a line `---` ends a document wherever it stands, also in a text of many lines.
_MARKER: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_WRITTEN: Final = re.compile(r"^\s*[^\s#]", re.MULTILINE)


def parse_text(text: str) -> dict[str, Any]:
    """Return the one definition that a text holds.

    Raises:
        ProblemError: 422 `definition_invalid`, with line and column.
    """
    found = parse_texts(text)
    if len(found) != 1:
        raise unreadable(
            required="one definition", got=f"{len(found)} of them", mend="send one at a time"
        )
    return found[0]


def parse_texts(text: str) -> list[dict[str, Any]]:
    """Return the definitions of a text, in YAML separated by `---`.

    Raises:
        ProblemError: 422 `definition_invalid`, with line and column.
    """
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise unreadable(
            required=f"at most {MAX_BYTES} bytes", got=f"{size} bytes", mend="split it"
        )
    _check_brackets(text)
    parsed = _from_json(text) if text.lstrip().startswith("{") else _from_yaml(text)
    for one in parsed:
        if not isinstance(one, dict) or not all(isinstance(name, str) for name in one):
            raise unreadable(
                required="an object with names", got=_kind(one), mend="begin with kind: metric"
            )
    return parsed


def split_text(text: str) -> list[str]:
    """Return the definitions of a YAML text, each as it was written, comments included.

    Documents of comments alone are left out. Nothing is checked.
    """
    documents = _MARKER.split(text)
    return [f"{one.strip()}\n" for one in documents if _WRITTEN.search(one)]


def unreadable(*, required: str, got: str, mend: str) -> ProblemError:
    """Return the refusal of a text that is no definition at all.

    Args:
        required: What the text must be, as it follows "must be".
        got: What came: where, or how much. The text itself may hold a secret.
        mend: What to do.
    """
    error = {"pointer": "", "required": required, "got": got, "mend": mend}
    message = f'definition must be {required}, got "{got}"; {mend}'
    return ProblemError(422, Reason.DEFINITION_INVALID, message, (error,))


def _from_json(text: str) -> list[Any]:
    try:
        return [json.loads(text, object_pairs_hook=_once)]
    except json.JSONDecodeError:
        # YAML written in braces, whose error also says more.
        return _from_yaml(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # Python converts no number of more than 4,300 digits
        raise _no_yaml(None, str(error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _repeated(got=f"{echo(twice)} twice")
    return found


def _from_yaml(text: str) -> list[Any]:
    try:
        _check_events(text)
        return list(YAML(typ="safe", pure=True).load_all(text))
    except DuplicateKeyError as error:
        raise _repeated(got=f"one twice{_line(error)}") from None
    except YAMLError as error:
        raise _no_yaml(_line(error), getattr(error, "problem", None)) from None
    except ValueError as error:
        raise _no_yaml(None, str(error)) from None


def _check_brackets(text: str) -> None:
    # ruamel takes seconds for a thousand brackets in a row before it tells of the first.
    nested = 0
    for sign in text:
        nested = max(0, nested + (sign in "[{") - (sign in "]}"))
        if nested > MAX_DEPTH:
            raise _too_deep()


def _check_events(text: str) -> None:
    nested = 0
    for event in YAML(typ="safe", pure=True).parse(io.StringIO(text)):
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            got = f"an anchor{_at(event)}"
            raise unreadable(required="without anchors", got=got, mend="write the value out")
        if isinstance(event, NodeEvent) and getattr(event, "tag", None):
            got = f"a tag{_at(event)}"
            raise unreadable(required="without tags", got=got, mend="write the plain value")
        nested += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if nested > MAX_DEPTH:
            raise _too_deep()


def _too_deep() -> ProblemError:
    return unreadable(
        required=f"at most {MAX_DEPTH} levels deep", got="more levels", mend="flatten it"
    )


def _repeated(*, got: str) -> ProblemError:
    required = "an object that has each name once"
    return unreadable(required=required, got=got, mend="remove one of the two")


def _no_yaml(where: str | None, why: str | None) -> ProblemError:
    mend = "mend that line" if where else "mend it"
    return unreadable(
        required="YAML or JSON",
        got=f"something else{where or ''}",
        mend=f"{mend}: {echo(why)}" if why else mend,
    )


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a name that is no text"
    return "a list" if isinstance(value, list) else "a plain value"


def _line(error: YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    return "" if mark is None else f" in line {mark.line + 1}, column {mark.column + 1}"


def _at(event: Any) -> str:
    mark = event.start_mark
    return "" if mark is None else f" in line {mark.line + 1}, column {mark.column + 1}"
