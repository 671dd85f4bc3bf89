"""What jobs that read the log make of records that another producer has forged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from weir_analytics.jobs import event_times, recount


class TestForged:
    """A record that another producer wrote, with the header and the places of ingest's."""

    HEAD = b'{"weirid":"%s","weirms":"+001800000000000","weirtenant":"acme","data":' % (b"a" * 32)
    VALUES = (b"[" * 5_000 + b"]" * 5_000 + b"}", b'"\xff"}', b"{")

    @pytest.mark.parametrize("rest", VALUES, ids=["deep", "no UTF-8", "no JSON"])
    def test_an_audit_reads_past_it(self, rest: bytes) -> None:
        """It was quarantined whole, and no audit may end at it."""
        asked: Any = SimpleNamespace(
            _near=((10_000, {180_000_000}),),
            _horizons=lambda _found: SimpleNamespace(beyond_ms=1),
            _is_asked_for=lambda told: told.weirtenant == "acme",
        )
        at_ms = 1_800_000_000_000
        found = recount._Event(b"a" * 16, at_ms, at_ms, 0, 0, self.HEAD + rest)
        assert recount.Recount._read(asked, found) is None

    @pytest.mark.parametrize("rest", VALUES, ids=["deep", "no UTF-8", "no JSON"])
    def test_it_is_nobodys(self, rest: bytes) -> None:
        """Whoever looks for a tenant's newest event looks on."""
        assert event_times._tenant_of(self.HEAD + b"1}") == "acme"
        assert event_times._tenant_of(self.HEAD + rest) is None
