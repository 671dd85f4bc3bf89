"""What jobs that read the log make of records that another producer has forged."""

from __future__ import annotations

import pytest
from weir_analytics.jobs import event_times


class TestForged:
    """A record that another producer wrote, with the header and the places of ingest's."""

    HEAD = b'{"weirid":"%s","weirms":"+001800000000000","weirtenant":"acme","data":' % (b"a" * 32)
    VALUES = (b"[" * 5_000 + b"]" * 5_000 + b"}", b'"\xff"}', b"{")

    @pytest.mark.parametrize("rest", VALUES, ids=["deep", "no UTF-8", "no JSON"])
    def test_it_is_nobodys(self, rest: bytes) -> None:
        """Whoever looks for a tenant's newest event looks on."""
        assert event_times._tenant_of(self.HEAD + b"1}") == "acme"
        assert event_times._tenant_of(self.HEAD + rest) is None
