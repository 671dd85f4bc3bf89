"""Frames of the server, as bytes for the wire. Each is built once for all who get it."""

from __future__ import annotations

from typing import Any

import msgspec
from weir.live import Answer, Delta
from weir.problems import ProblemError

from weir_dashboard.live.socket import framed

PART_BYTES = 500_000
_ENCODER = msgspec.json.Encoder()


def frame(op: str, **members: Any) -> bytes:
    """Return a message as a frame."""
    return framed(_ENCODER.encode({"op": op, **members}))


def error(subscription_id: int | None, problem: ProblemError) -> bytes:
    """Return a refusal; the socket stays open."""
    return frame("error", id=subscription_id, problem=problem.body())


def delta(key: str, change: Delta) -> bytes:
    """Return what changed."""
    return frame("delta", key=key, **change)


def snapshot(key: str, answer: Answer) -> list[bytes]:
    """Return a whole answer, in parts of at most about 512 KB, split between series.

    Each part carries all members but only its share of the series.
    """
    shares: list[list[msgspec.Raw]] = [[]]
    size = 0
    for series in answer["series"]:
        encoded = _ENCODER.encode(series)
        if size and size + len(encoded) > PART_BYTES:
            shares.append([])
            size = 0
        shares[-1].append(msgspec.Raw(encoded))
        size += len(encoded)
    return [
        frame(
            "snapshot",
            key=key,
            epoch=answer["epoch"],
            rev=answer["rev"],
            part=number,
            parts=len(shares),
            answer={**answer, "series": share},
        )
        for number, share in enumerate(shares, 1)
    ]
