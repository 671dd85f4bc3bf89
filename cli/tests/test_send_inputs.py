"""Files and what flows, from the start or from a place on, also compressed."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir_cli.exits import UsageError
from weir_cli.sending import inputs
from weir_cli.sending.inputs import Gunzip, Input, InputBrokenError, Span


@contextmanager
def opened(raw: bytes, kind: str, piece_bytes: int) -> Iterator[Input]:
    """Open an input that is read in small pieces, as a file, as gzip or as what flows."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "PIECE_BYTES", piece_bytes)
        patch.setattr(inputs, "HEAD_BYTES", 2 * piece_bytes)
        path = Path(folder) / "a"
        if kind == "pipe":
            ours, theirs = os.pipe()
            os.write(theirs, raw)
            os.close(theirs)
            source = Input(Path(f"/dev/fd/{ours}"))
            os.close(ours)
        else:
            path.write_bytes(gzip.compress(raw) if kind == "gzip" else raw)
            source = Input(path)
        try:
            yield source
        finally:
            source.close()


class TestAt:
    @settings(max_examples=30)
    @given(raw=st.binary(min_size=1, max_size=60), size=st.integers(1, 9), data=st.data())
    @pytest.mark.parametrize("kind", ["file", "gzip", "pipe"])
    def test_from_any_place(self, kind: str, raw: bytes, size: int, data: st.DataObject) -> None:
        """What was before it is given as asked for, and what follows comes whole."""
        raw = b"x" + raw  # gzip is told by its first bytes
        offset = data.draw(st.integers(0, len(raw)))
        starts = data.draw(st.lists(st.integers(0, offset), max_size=3))
        spans = tuple(Span(at, data.draw(st.integers(0, offset - at))) for at in starts)
        with opened(raw, kind, size) as source:
            assert source.at(offset, spans) == [raw[s.start : s.start + s.length] for s in spans]
            assert b"".join(source.pieces()) == raw[offset:]
            assert source.is_file == (kind != "pipe")
            assert source.share == (None if kind == "pipe" else 1.0)

    @pytest.mark.parametrize("kind", ["file", "gzip", "pipe"])
    def test_over_many_pieces(self, kind: str) -> None:
        """Spans that begin and end anywhere in them."""
        raw = bytes(range(60))
        with opened(raw, kind, 4) as source:
            found = source.at(50, (Span(0, 5), Span(10, 21), Span(49, 1)))
            assert found == [raw[:5], raw[10:31], raw[49:50]]
            assert b"".join(source.pieces()) == raw[50:]

    @pytest.mark.parametrize("kind", ["file", "gzip", "pipe"])
    def test_a_place_behind_the_end(self, kind: str) -> None:
        """What is not there is not given, and nothing follows."""
        with opened(b"abc", kind, 2) as source:
            assert source.at(9, (Span(1, 8), Span(8, 1))) == [b"bc", b""]
            assert b"".join(source.pieces()) == b""

    def test_how_it_begins(self) -> None:
        """Of a file as much as is needed to tell what it is; of what flows the first line."""
        with opened(b"a\nb\n" * 10, "file", 4) as source:
            assert (source.beginning.head, source.beginning.is_whole) == (b"a\nb\na\nb\n", False)
        with opened(b"a\nb\n" * 10, "pipe", 1) as source:
            assert (source.beginning.head, source.beginning.is_whole) == (b"a\n", False)
        with opened(b"ab", "file", 4) as source:
            assert (source.beginning.head, source.beginning.is_whole) == (b"ab", True)
        with opened(b"", "file", 4) as source:
            assert (source.beginning.head, source.share) == (b"", None)


class TestGunzip:
    def test_pieces_are_bounded(self) -> None:
        """A gigabyte of zeros is a megabyte of gzip: it must not come at once."""
        packed = gzip.compress(bytes(20 * inputs.PIECE_BYTES))
        pieces = list(Gunzip("a").feed(packed))
        assert max(map(len, pieces)) <= inputs.PIECE_BYTES
        assert sum(map(len, pieces)) == 20 * inputs.PIECE_BYTES

    def test_what_is_none(self) -> None:
        """What stands behind a member must be another one."""
        unpacked = Gunzip("a")
        with pytest.raises(InputBrokenError, match=r"^a must be gzip to its end: Error -3 while"):
            list(unpacked.feed(gzip.compress(b"x") + b"more"))

    def test_one_that_is_none_from_its_start(self) -> None:
        """It is met before anything is sent."""
        with (
            pytest.raises(UsageError, match=r"must be a file that can be read: .* must be gzip to"),
            opened(b"\x1f\x8b\x00", "file", 9),
        ):
            pass
