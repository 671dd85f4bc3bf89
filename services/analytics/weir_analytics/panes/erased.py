"""Who was erased, as columns: the keyed hash of whom an event is about.

HMAC-SHA256 (RFC 2104) is two hashes over padded texts, which Spark has natively; a test
holds them to `weir.erasure.subject_hash`. Only plans of installations in which somebody
was erased pay for it, and only for events of those tenants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from weir.erasure import PREFIX, pads
from weir.expressions import Path

from weir_analytics.panes.compile_views import View

SUBJECT: Final = (Path(("subject",)), View.TEXT)
"""What is read of an event to know whom it is about."""


@dataclass(frozen=True)
class Erased:
    """Subjects whose events count no more.

    Attributes:
        subjects: (tenant, hash of the subject).
        hash_key: The installation's key; in no text of this.
        later: The same of those who were erased after these events: the account of them stays,
            but no pane of a version is given them again.
    """

    subjects: frozenset[tuple[str, str]]
    hash_key: bytes = field(repr=False)
    later: frozenset[tuple[str, str]] = frozenset()

    def __post_init__(self) -> None:
        if not self.hash_key:
            msg = (
                "secrets_dir must hold the file hash_key, since somebody was erased; found none. "
                "Without it events about them would be counted: give the job the key of ingest"
            )
            raise ValueError(msg)

    def about(self, subject: Column) -> Column:
        """Return whether an event is about one of them; true or false, never null.

        Args:
            subject: Whom it is about; its tenant is the column `view_weirtenant`.
        """
        return self._is_one(subject, self.subjects)

    def about_later(self, subject: Column) -> Column:
        """Return the same of those who were erased later."""
        return self._is_one(subject, self.later)

    def _is_one(self, subject: Column, subjects: frozenset[tuple[str, str]]) -> Column:
        inner, outer = (F.lit(pad) for pad in pads(self.hash_key))
        tenant = F.col("view_weirtenant")
        message = F.concat(
            F.lit(PREFIX), F.encode(tenant, "UTF-8"), F.lit(b"\0"), F.encode(subject, "UTF-8")
        )
        first = F.unhex(F.sha2(F.concat(inner, message), 256))
        known = F.sha2(F.concat(outer, first), 256)
        tenants = sorted({tenant for tenant, _hash in subjects})
        hashes = sorted({told for _tenant, told in subjects})
        return F.coalesce(tenant.isin(tenants) & known.isin(hashes), F.lit(False))
