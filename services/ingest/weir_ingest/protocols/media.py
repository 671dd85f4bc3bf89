"""Media types of CloudEvents."""

from __future__ import annotations

from weir.problems import ProblemError, Reason, echo

from weir_ingest.head import Head


def check_json_format(head: Head) -> None:
    """Refuse a CloudEvents format other than JSON.

    Raises:
        ProblemError: 415 `unsupported_media_type`.
    """
    media_type = head.content_type.partition(b";")[0].strip()
    if not media_type.endswith(b"+json"):
        got = echo(media_type.decode("latin-1"))
        message = f'content-type must be a CloudEvents format in JSON, got "{got}"; use +json'
        raise ProblemError(415, Reason.UNSUPPORTED_MEDIA_TYPE, message)


def is_json(content_type: bytes) -> bool:
    """Say whether a media type is JSON; none at all is JSON (INGEST 4.1)."""
    media_type = content_type.partition(b";")[0].strip()
    return media_type in (b"", b"application/json", b"text/json") or media_type.endswith(b"+json")
