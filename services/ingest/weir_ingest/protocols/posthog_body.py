"""Bodies of PostHog's clients, down to their JSON.

The JSON may stand in the member `data` of a form or of the query, in base64, in gzip, or in gzip
in base64; `compression` says in which, or says nothing, or is wrong. So it is told by its bytes:
JSON of events begins with a bracket, gzip with its magic number, and what base64 decodes to with
one of these.
"""

from __future__ import annotations

import binascii
import re

from weir.problems import ProblemError, Reason, echo

from weir_ingest import encodings

_GZIP_MAGIC = b"\x1f\x8b"
_UNSUPPORTED = re.compile(r"lz", re.ASCII | re.IGNORECASE)

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+[{\[]")
_DATA = re.compile(rb"(?:\A|&)data=([^&]*)")
_COMPRESSION = re.compile(rb"(?:\A|&)compression=([^&]*)")
_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]++={0,2}")
_TO_BASE64 = bytes.maketrans(b" -_", b"++/")


def json_of(body: bytes, compression: str, limit: int) -> bytes:
    """Return the JSON that a body or the query's `data` carries.

    Args:
        body: As its Content-Encoding left it, or the value of `data`.
        compression: What the query says of it, empty if nothing.
        limit: Largest output, bytes.

    Raises:
        ProblemError: 415 for lz-string; 400 for a form that is not percent-encoded, and for gzip
            that is corrupt or cut; 413 over the limit.
    """
    if _is_clear(body):
        return encodings.decode(body, b"", limit)
    # Whatever its Content-Type says: a form is known by its members.
    form = _DATA.search(body)
    if form is not None:
        said = _COMPRESSION.search(body)
        compression = compression or (said[1][:64].decode("latin-1") if said else "")
        body = _unquoted(form[1])
    if _UNSUPPORTED.match(compression):
        message = f'compression must be base64, gzip or gzip-js, got "{echo(compression)}"'
        raise ProblemError(415, Reason.UNSUPPORTED_ENCODING, message)
    if not _is_clear(body):
        body = _from_base64(body)
    return encodings.decode(body, b"", limit)


def _is_clear(text: bytes) -> bool:
    """Say whether a text begins as JSON of events does, or as gzip, which has no coding then."""
    return text.startswith(_GZIP_MAGIC) or _JSON.match(text) is not None


def _from_base64(text: bytes) -> bytes:
    """Return what a text is base64 of, of either alphabet and padded or not; else the text."""
    # In a form "+" means a space.
    plain = text.translate(_TO_BASE64, b"\r\n\t")
    if not _BASE64.fullmatch(plain):
        return text
    plain = plain.rstrip(b"=")
    try:
        found = binascii.a2b_base64(plain + b"=" * (-len(plain) % 4))
    except binascii.Error:
        return text
    return found if _is_clear(found) else text


def _unquoted(value: bytes) -> bytes:
    """Undo percent-encoding, at memory speed: a list of twenty megabytes of `%41` is gigabytes.

    Raises:
        ProblemError: 400 `bad_encoding`, if a percent sign stands for itself.
    """
    stray = _STRAY_PERCENT.search(value)
    if stray is not None:
        message = (
            f"data must be percent-encoded, got a percent sign alone at byte {stray.start()}; "
            "write it as %25"
        )
        raise ProblemError(400, Reason.BAD_ENCODING, message)
    value = value.replace(b"+", b" ")
    if b"%" not in value:
        return value
    # Quoted-printable is the same with another sign, and is decoded by one call.
    return binascii.a2b_qp(value.replace(b"=", b"=3D").replace(b"%", b"="))
