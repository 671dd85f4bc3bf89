"""Sieves: a bit of all that identities may begin with, set for those that are there.

Whatever finds its bit unset is not there (a Bloom filter of one function, Bloom 1970; identities
are digests, so their first bits are one). In order, as events are looked for, a sieve is read from
one end to the other; a search reads all over a run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

# A sieve has so many bits an identity, at least: one event in so many is looked for in vain.
SIEVE_BITS = 16
# A search in fewer identities takes no longer than a look at the sieve.
SIEVED = 2_048
# Of a run that was read back from a long log there are many millions.
_AT_ONCE = 262_144
_WORD_BITS = 64


def sieve_of(high: U64) -> U64:
    """Return the bits of what the first 8 bytes of identities begin with; none if they are few.

    Args:
        high: The first 8 bytes of each, in ascending order.
    """
    sieve = np.zeros(sieve_words(len(high)), np.uint64)
    for at in range(0, len(high) if len(sieve) else 0, _AT_ONCE):
        begin = (high[at : at + _AT_ONCE] >> _shift(len(sieve))).view(np.int64)
        first, last = int(begin[0]) // _WORD_BITS, int(begin[-1]) // _WORD_BITS
        bits = np.zeros((last + 1 - first) * _WORD_BITS, bool)
        bits[begin - first * _WORD_BITS] = True
        sieve[first : last + 1] |= np.packbits(bits, bitorder="little").view("<u8")
    return sieve


def add(sieve: U64, high: U64) -> None:
    """Set the bits of further identities in a sieve for many more.

    Args:
        sieve: The sieve, which is changed.
        high: The first 8 bytes of each, in ascending order.
    """
    for at in range(0, len(high), _AT_ONCE):
        word, bit = _places(sieve, high[at : at + _AT_ONCE])
        first = np.flatnonzero(np.diff(word, prepend=-1))
        sieve[word[first]] |= np.bitwise_or.reduceat(bit, first)


def sieve_words(identities: int) -> int:
    """Return how many words of 64 bits the sieve of some identities has: a power of two, or 0."""
    if identities < SIEVED:
        return 0
    return 1 << (-(-SIEVE_BITS * identities // _WORD_BITS) - 1).bit_length()


def passing(sieve: U64, high: U64) -> npt.NDArray[np.intp]:
    """Return which of some identities may be there, by the first 8 bytes of each."""
    word, bit = _places(sieve, high)
    return np.flatnonzero(sieve.take(word) & bit)


def _places(sieve: U64, high: U64) -> tuple[npt.NDArray[np.int64], U64]:
    """Return the word and the bit of each identity."""
    begin = high >> _shift(len(sieve))
    return (begin >> np.uint64(6)).view(np.int64), np.uint64(1) << (begin & np.uint64(63))


def _shift(words: int) -> np.uint64:
    """Return by how much the first 8 bytes are shifted to be the place of a bit of a sieve."""
    return np.uint64(64 - (words * _WORD_BITS - 1).bit_length())
