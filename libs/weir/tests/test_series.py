"""Series: their texts read back, never clash, and name a shard."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.series import (
    MAX_BYTES,
    OTHER,
    cut_text,
    decode_series,
    encode_series,
    fit,
    series_digest,
    shard_of,
)

short_values = st.lists(st.none() | st.text(max_size=10), min_size=1, max_size=4)


class TestEncodeSeries:
    @pytest.mark.parametrize(
        ("values", "text"),
        [
            ((), ""),
            (("eu",), "=eu"),
            ((None,), "~"),
            (("",), "="),
            (("eu", None, "/pay"), "=eu|~|=/pay"),
            (("a|b", "c\\d"), "=a\\|b|=c\\\\d"),
            (("~", "*"), "=~|=*"),
        ],
    )
    def test_vectors(self, values: tuple[str | None, ...], text: str) -> None:
        """The texts of the contract, which the engine writes in Spark too."""
        assert encode_series(values) == text

    def test_256_bytes_stay_whole(self) -> None:
        """A text of exactly 256 bytes is kept as it is."""
        assert encode_series(["a" * 255]) == "=" + "a" * 255

    def test_257_bytes_are_cut(self) -> None:
        """A text of 257 bytes keeps 64 characters and ends in the MD5 of the whole."""
        whole = "=" + "a" * 256
        digest = hashlib.md5(whole.encode(), usedforsecurity=False).hexdigest()
        assert encode_series(["a" * 256]) == whole[:64] + "…" + digest

    def test_length_counts_bytes(self) -> None:
        """Characters of several bytes count with all of them."""
        assert len(encode_series(["é" * 127])) == 128
        assert "…" in encode_series(["é" * 128])

    @given(short_values)
    def test_reads_back(self, values: list[str | None]) -> None:
        """Decoding gives the values that were encoded, whatever they hold."""
        text = encode_series(values)
        if len(text.encode()) <= MAX_BYTES and "…" not in text:
            assert decode_series(text) == tuple(values)

    @given(st.lists(st.none() | st.text(max_size=300), min_size=3, max_size=3))
    def test_any_text_can_be_decoded(self, values: list[str | None]) -> None:
        """Cut texts, too, give one value a dimension, and never an error."""
        assert len(fit(decode_series(encode_series(values)), 3)) == 3

    @given(short_values, short_values)
    def test_no_two_series_share_a_text(
        self, one: list[str | None], other: list[str | None]
    ) -> None:
        """Different values have different texts, and none is that of `other`."""
        assert (encode_series(one) == encode_series(other)) == (one == other)
        assert encode_series(one) != OTHER


class TestCutText:
    @pytest.mark.parametrize("letter", ["a", "é", "…", "😀"])
    def test_256_bytes_stay_whole_and_more_are_cut(self, letter: str) -> None:
        """Whatever a character takes, 64 of them are left, and the MD5 of the whole."""
        most = letter * (MAX_BYTES // len(letter.encode()))
        most += "." * (MAX_BYTES - len(most.encode()))
        digest = hashlib.md5(f"{most}.".encode(), usedforsecurity=False).hexdigest()

        assert cut_text(most) == most
        assert cut_text(most + ".") == most[:64] + "…" + digest


class TestDecodeSeries:
    @pytest.mark.parametrize("text", [OTHER, "eu", "=eu|pay"])
    def test_refuses_what_no_series_is_written_as(self, text: str) -> None:
        """A text without its marks is refused, `other` among them."""
        with pytest.raises(ValueError, match='must have "~" or "=" before each value'):
            decode_series(text)


class TestShardOf:
    def test_first_four_bytes(self) -> None:
        """The shard is read from the first 4 bytes of the digest, big-endian."""
        assert shard_of(bytes([0, 0, 1, 2]) + bytes(12), 256) == 2
        assert shard_of(bytes([0, 0, 1, 2]) + bytes(12), 1) == 0

    def test_digest_is_md5_of_the_text(self) -> None:
        """The digest of the empty text is MD5's of nothing."""
        assert series_digest("").hex() == "d41d8cd98f00b204e9800998ecf8427e"
