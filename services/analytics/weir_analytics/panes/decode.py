"""The first step of a batch: what each record is, read without parsing JSON.

The first header and the first 70 bytes of a value tell what a record is, its
identity and its event time (docs/interfaces.md, section 1).
"""

from __future__ import annotations

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir import names
from weir.event import DIGEST_END, TIME_AT, VALUE_PREFIX

from weir_analytics.panes.history import GARBLED
from weir_analytics.panes.kinds import Kind

PREFIX = VALUE_PREFIX
# What was cut off on its way does not end so; a parser would read the beginning.
END = b"}"
# Places are 1-based and in bytes, as Spark's `substring` of a binary counts.
_IDENTITY_AT, _IDENTITY_LENGTH = 12, 32
_BETWEEN_AT, _BETWEEN = DIGEST_END + 1, b'","weirms":"'
_TIME_AT, _TIME_LENGTH = TIME_AT + 1, 16


def classify(log: DataFrame) -> DataFrame:
    """Say of every record what it is, and cut out what the dedup step needs.

    Leaves: partition, offset, at_ms (append time), kind, identity (16 bytes, of
    events), given and headers (the bytes, and the headers as hexadecimal text, of
    refused and foreign records), value.
    """
    return log.select(*_cut()).select(*_classified())


@cache
def _cut() -> tuple[Column, ...]:
    return (
        F.col("partition"),
        F.col("offset"),
        F.unix_millis("timestamp").alias("at_ms"),
        F.when(~_is_garbled(), _name(F.get("headers", F.lit(0)))).alias("first"),
        F.when(~_is_garbled(), F.col("headers")).alias("headers"),
        _identity().alias("identity"),
        F.col("value"),
    )


@cache
def _classified() -> tuple[Column, ...]:
    kind = _kind()
    unusual = kind.isin(int(Kind.REFUSED), int(Kind.FOREIGN))
    return (
        F.col("partition"),
        F.col("offset"),
        F.col("at_ms"),
        kind.cast("tinyint").alias("kind"),
        F.col("identity"),
        F.when(unusual, F.col("value")).alias("given"),
        F.when(unusual, _headers_text()).alias("headers"),
        F.col("value"),
    )


def event_time_ms(value: Column) -> Column:
    """Return the corrected event time that stands at the fixed place, null if none does."""
    return F.substring(value, _TIME_AT, _TIME_LENGTH).cast("string").try_cast("bigint")


def event_identity(value: Column) -> Column:
    """Return the identity digest of an event's value: 16 bytes."""
    return F.unhex(F.substring(value, _IDENTITY_AT, _IDENTITY_LENGTH).cast("string"))


def _has_time(value: Column) -> Column:
    """Tell whether a sign and 15 digits stand at the time's place: a cast takes blanks, too."""
    sign = F.substring(value, _TIME_AT, 1)
    last = F.substring(value, _TIME_AT + _TIME_LENGTH - 1, 1)
    signed = (sign == F.lit(b"+")) | (sign == F.lit(b"-"))
    return signed & last.between(F.lit(b"0"), F.lit(b"9")) & event_time_ms(value).isNotNull()


def _is_garbled() -> Column:
    """Tell whether some header's name is not UTF-8: all are void then, as in `history.py`."""
    return F.contains(F.array_join(F.col("headers")["key"], ""), F.lit(GARBLED))


def _name(header: Column) -> Column:
    """Return a header's name, up to a zero byte: librdkafka's clients see no more of it."""
    return F.substring_index(header["key"], "\x00", 1)


def _headers_text() -> Column:
    """Return the headers as `<key>=<value>,…` in hexadecimal; of a null value the key alone.

    As a list of structs they would cost the Arrow writer of every record, also of those
    without, as much as all the rest of the batch: it measures its vectors row by row.
    """
    written = F.transform(
        "headers",
        lambda header: F.concat_ws("=", F.hex(_name(header)), F.hex(header["value"])),
    )
    return F.array_join(written, ",")


def _identity() -> Column:
    digits = F.substring("value", _IDENTITY_AT, _IDENTITY_LENGTH).cast("string")
    starts = F.substring("value", 1, len(PREFIX)) == F.lit(PREFIX)
    between = F.substring("value", _BETWEEN_AT, len(_BETWEEN)) == F.lit(_BETWEEN)
    identity = F.unhex(digits)
    # Written back it is what was read only if that was 32 lower-case digits.
    return F.when(starts & between & (F.lower(F.hex(identity)) == digits), identity)


def _kind() -> Column:
    first, value = F.col("first"), F.col("value")
    whole = F.substring(value, -1, 1) == F.lit(END)
    known = F.col("identity").isNotNull() & _has_time(value) & whole
    return (
        F.when((first == names.HEADER_TICK) & value.isNull(), int(Kind.TICK))
        .when((first == names.HEADER_REASON) & value.isNotNull(), int(Kind.REFUSED))
        .when((first == names.HEADER_CONTENT_TYPE) & known, int(Kind.EVENT))
        .when((first == names.HEADER_TAIL) & known, int(Kind.SAMPLED))
        .otherwise(int(Kind.FOREIGN))
    )
