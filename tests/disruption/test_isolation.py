"""I8: what a tenant sees is the same with and without another; two runs compared.

The other sends what cannot be used, or a million series at its budget (`bench/tenants.py`; with
`WEIR_SERIES=50000` for a try, in as many seconds fewer).
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tenants
from disruption.faults import bites
from disruption.mixed import LATEST_MS, OLD_MS, MixedLoad
from disruption.mixed_recount import AGGREGATES, PANE_MS, SPEC
from disruption.rig import promised_s
from disruption.scene import PATIENCE_S, await_new_result, scene
from disruption.tenants import define_mixed, key_for
from recount import DISPOSITIONS, Api, ledger_rows
from tenant_loads import GROUPS, QUIET_ASKED, Quiet, differences
from weir.clock import SystemClock

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(1800)]

LINES = 40_000
SPAN_MS = LATEST_MS + 10 * PANE_MS
SERIES = int(os.environ.get("WEIR_SERIES") or 1_000_000)
FRESH_MS = promised_s(3.0) * 1000
# Of how fresh the one's numbers are alone: what the other may add to it at most.
BESIDE_ALONE = promised_s(1.25)
FLOOD = argparse.Namespace(
    series=SERIES, kept=tenants.KEPT, seconds=120.0 * SERIES / 1_000_000, warm_s=20.0
)


class Junk(MixedLoad):
    """A load of what cannot be used: by ingest, by the metric, or for its age."""

    def _lines(self, count: int) -> list[bytes]:
        now_ms = SystemClock().now_ms()
        return [
            (
                self._bad(now_ms),
                self._other("wrong", now_ms, '{"n": 1}'),
                self._other("old", now_ms - OLD_MS, 7),
            )[n % 3]
            for n in range(count)
        ]


def test_anothers_bad_input_changes_nothing(tmp_path: Path, seed: int) -> None:
    """Every pane, and the account: the same lines of the one, alone and beside the other's."""
    at_ms = SystemClock().now_ms() // PANE_MS * PANE_MS
    alone = run(tmp_path / "alone", seed, at_ms, beside=False)
    beside = run(tmp_path / "beside", seed, at_ms, beside=True)

    panes, account = alone
    assert len(panes) > 1_000
    assert account["counted"] >= 0.8 * LINES
    keys = panes.keys() | beside[0].keys()
    different = [key for key in keys if panes.get(key) != beside[0].get(key)]
    assert different == []
    assert beside[1] == account


def run(
    folder: Path, seed: int, at_ms: int, *, beside: bool
) -> tuple[dict[Any, tuple[Any, ...]], Counter[str]]:
    """Return what the first tenant is served of its lines: panes, and events by disposition."""
    folder.mkdir()
    # Only the tenant's own metric is compared, of another load.
    with scene(folder, seed, lasting=False, sketched=False) as here:
        here.load.pause()
        rig = here.rig
        keys = {tenant: key_for(rig, tenant) for tenant in ("first", "acme")}
        for key in keys.values():
            define_mixed(rig, key)
        first = MixedLoad(rig.ingest_url, keys["first"], seed, "first", LINES, at_ms=at_ms)
        other = Junk(rig.ingest_url, keys["acme"], seed, "acme", LINES, batch=500)
        loads = [first, other] if beside else [first]
        for load in loads:
            load.start()
        rig.wait_until(lambda: all(load.is_done for load in loads), "all lines", PATIENCE_S)
        await_new_result(rig, PATIENCE_S)
        bites(not beside or sum(other.kinds.values()) >= LINES, "bad input")
        api, span = Api(rig.dashboard_url, first.key), (at_ms - SPAN_MS, at_ms + PANE_MS)
        panes = {
            (aggregate, *key): (point["value"], point["count"])
            for aggregate in AGGREGATES
            for key, point in api.panes(SPEC, aggregate, PANE_MS, span)
            if point["count"]
        }
        account: Counter[str] = Counter()
        for row in ledger_rows(api, at_ms - SPAN_MS):
            account.update({name: row[name] for name in DISPOSITIONS if row[name]})
        return panes, account


@pytest.mark.alone
def test_a_million_series_of_another_change_nothing() -> None:
    """They come within two minutes; a metric that takes all that a tenant may is defined meanwhile.

    Each pane of the one is that of its run alone, and about as fresh; the other is told that it is
    capped, and of a definition a day longer that it is too much.
    """
    quiet = Quiet(SystemClock().now_ms(), FLOOD.warm_s + FLOOD.seconds)
    usual, alone = tenants.run(quiet, FLOOD, beside=False)
    found, beside = tenants.run(quiet, FLOOD, beside=True)

    bites(found["accepted"] == SERIES, "a series for each event of the other")
    bites(0.2 < found["defined_after_share"] < 1, "a definition while the other's events come")
    assert len(alone) >= len(QUIET_ASKED) * GROUPS
    assert differences(alone, beside) == []
    assert found["fresh_ms"]["p99"] < FRESH_MS, f"numbers must stay fresh: {found['fresh_ms']}"
    fresh_ms, alone_ms = found["fresh_ms"]["p99"], usual["fresh_ms"]["p99"]
    assert fresh_ms <= BESIDE_ALONE * alone_ms, f"p99 alone {alone_ms} ms, beside {fresh_ms} ms"
    assert found["told"] == (
        "more series than the metric keeps; those without a row of their own are "
        'in "other" and not known one by one'
    )
    assert found["told_of_a_larger_definition"].startswith(
        "required at most 549755813888 bytes of panes, what is left of 549755813888; got "
    )
    assert "lower max_series (1000)" in found["told_of_a_larger_definition"]
