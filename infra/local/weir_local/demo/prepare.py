"""Put the demo's metrics and boards through the public API, before the first event.

Before, because a metric counts what comes after it was activated: only then do its
numbers cover the whole hour that the feeder sends first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from weir.definitions.text import parse_text, split_text

from weir_local.client import ApiClient, ApiError
from weir_local.home import Home
from weir_local.repository import DEFINITIONS
from weir_local.services import addresses
from weir_local.waiting import wait_until

ACTIVE_TIMEOUT_S = 60.0


def put_definitions(home: Home, say: Callable[[str], None]) -> None:
    """Put every definition of the demo that is not there yet.

    A definition that somebody has changed since is left as it is.

    Raises:
        ApiError: If the API refused one.
    """
    with _client(home) as client:
        texts = read_definitions(DEFINITIONS)
        new = [name for name, text in texts.items() if put_new(client, name, text)]
    say(f"{'demo':<10} {len(texts)} definitions, {len(new)} of them new")


def wait_until_counting(home: Home) -> None:
    """Return when the panes job counts every metric of the demo.

    Raises:
        TimeoutError: If it did not begin in time.
    """
    metrics = [name for name in read_definitions(DEFINITIONS) if name.startswith("metric/")]
    with _client(home) as client:
        wait_until(
            lambda: all(is_active(client, name) for name in metrics),
            timeout_s=ACTIVE_TIMEOUT_S,
            what="the demo's metrics counting",
            every_s=0.2,
        )


@contextmanager
def _client(home: Home) -> Iterator[ApiClient]:
    known = addresses(home)
    client = ApiClient(known["WEIR_DASHBOARD_URL"], known["WEIR_API_KEY"], patience_s=60)
    try:
        yield client
    finally:
        client.close()


def read_definitions(folder: Path) -> dict[str, str]:
    """Return the text of every definition in a folder by `<kind>/<name>`."""
    texts = [
        text for path in sorted(folder.glob("*.yaml")) for text in split_text(path.read_text())
    ]
    heads = [parse_text(text) for text in texts]
    return {f"{head['kind']}/{head['name']}": text for head, text in zip(heads, texts, strict=True)}


def put_new(client: ApiClient, name: str, text: str) -> bool:
    """Put a definition unless there is one of that name; return whether it was put."""
    try:
        client.call("PUT", f"/api/v1/definitions/{name}", {"text": text}, {"If-None-Match": "*"})
    except ApiError as error:
        if error.status in (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT):
            return False
        raise
    return True


def is_active(client: ApiClient, name: str) -> bool:
    """Return whether the panes job counts this metric."""
    answer = client.call("GET", f"/api/v1/definitions/{name}/progress")
    return bool(answer.body.get("active"))
