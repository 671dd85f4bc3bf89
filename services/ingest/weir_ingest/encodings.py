"""Content codings, decoded within a bound of output (INGEST 3.4).

A few kilobytes can unfold to gigabytes, so no decoder here ever holds more than
the limit and one step beyond it.
"""

from __future__ import annotations

import zlib

import cramjam
import zstandard
from weir.problems import ProblemError, Reason

_STEP = 65_536
# A body of thousands of empty members costs a copy of the rest for each.
_MAX_MEMBERS = 1_000
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 31, 15, -15
# One zstd block expands at most 32,768 times.
_ZSTD_EXPANSION_SHIFT = 15
_ZSTD_MIN_STEP = 64
_ZSTD_MAX_WINDOW = 8 << 20
_SNAPPY_FRAME = b"\xff\x06\x00\x00sNaPpY"


def decode(body: bytes, coding: bytes, limit: int) -> bytes:
    """Return a decoded body.

    A gzip body without a coding is known by its first bytes: some browsers'
    clients send it so.

    Args:
        body: As sent.
        coding: The Content-Encoding header, empty if there is none.
        limit: Largest output, bytes.

    Raises:
        ProblemError: 415 unknown coding or several, 400 corrupt or cut, 413 over
            the limit.
    """
    name = coding.strip().lower()
    if name in (b"", b"identity"):
        if body[:2] != _GZIP_MAGIC:
            return body
        name = b"gzip"
    if name in (b"gzip", b"x-gzip"):
        return _inflate(body, _GZIP_BITS, limit)
    if name == b"deflate":
        # RFC 1950 has a header; some senders leave it out.
        wrapped = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
        return _inflate(body, _ZLIB_BITS if wrapped else _RAW_BITS, limit)
    if name == b"zstd":
        return _unzstd(body, limit)
    raise ProblemError(
        415,
        Reason.UNSUPPORTED_ENCODING,
        "content-encoding must be one of gzip, zstd, deflate, identity; send it uncompressed",
    )


def unsnappy(body: bytes, limit: int) -> bytes:
    """Return a body decoded from one block of Snappy, as Prometheus sends it.

    The block says first how long it becomes: what is too long is never made.

    Args:
        body: As sent.
        limit: Largest output, bytes.

    Raises:
        ProblemError: 400 corrupt or cut, 413 over the limit.
    """
    if body.startswith(_SNAPPY_FRAME):
        raise _bad(why="it is in Snappy's framed format, which must be one block")
    try:
        if cramjam.snappy.decompress_raw_len(body) > limit:
            raise _over(limit)
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise _bad(why=str(error)) from None


def _inflate(body: bytes, bits: int, limit: int) -> bytes:
    out = bytearray()
    at = members = 0
    try:
        while at < len(body):
            members += 1
            if members > _MAX_MEMBERS:
                raise _bad(why=f"it has over {_MAX_MEMBERS} members")
            at += _inflate_member(memoryview(body)[at:], bits, limit, out)
    except zlib.error as error:
        raise _bad(why=str(error)) from None
    return bytes(out)


def _inflate_member(data: memoryview, bits: int, limit: int, out: bytearray) -> int:
    """Decode one member to the end of `out`; return how many bytes of input it took."""
    decoder = zlib.decompressobj(bits)
    at = 0
    pending = b""
    while not decoder.eof:
        if not pending:
            if at >= len(data):
                raise _bad(why="it ends early")
            pending = bytes(data[at : at + _STEP])
            at += len(pending)
        out += decoder.decompress(pending, limit + 1 - len(out))
        if len(out) > limit:
            raise _over(limit)
        pending = decoder.unconsumed_tail
    return at - len(decoder.unused_data)


def _unzstd(body: bytes, limit: int) -> bytes:
    out = bytearray()
    at = frames = 0
    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
    try:
        while at < len(body):
            frames += 1
            if frames > _MAX_MEMBERS:
                raise _bad(why=f"it has over {_MAX_MEMBERS} frames")
            at += _unzstd_frame(context, memoryview(body)[at:], limit, out)
    except zstandard.ZstdError as error:
        raise _bad(why=str(error)) from None
    return bytes(out)


def _unzstd_frame(
    context: zstandard.ZstdDecompressor, data: memoryview, limit: int, out: bytearray
) -> int:
    """Decode one frame; the one-shot reader would end early without an error."""
    decoder = context.decompressobj()
    at = 0
    while not decoder.eof:
        if at >= len(data):
            raise _bad(why="it ends early")
        step = max(_ZSTD_MIN_STEP, (limit - len(out)) >> _ZSTD_EXPANSION_SHIFT)
        piece = bytes(data[at : at + step])
        at += len(piece)
        out += decoder.decompress(piece)
        if len(out) > limit:
            raise _over(limit)
    return at - len(decoder.unused_data)


def _bad(why: str) -> ProblemError:
    message = f"body must be whole in its content-encoding; {why}"
    return ProblemError(400, Reason.BAD_ENCODING, message)


def _over(limit: int) -> ProblemError:
    message = f"body must be at most {limit} bytes decoded; send it in parts"
    return ProblemError(413, Reason.DECOMPRESSED_TOO_LARGE, message)
