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
from disruption.faults import bites, judged, with_mutant
from disruption.mixed import LATEST_MS, OLD_MS, MixedLoad, await_end
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
    """A load of what cannot be used: by ingest, by the metric, or for its age.

    What the metric cannot use has the identities of the other tenant's events, one by one.
    """

    def _lines(self, count: int) -> list[bytes]:
        now_ms = SystemClock().now_ms()
        return [
            (
                self._bad(now_ms),
                self._taken(now_ms),
                self._other("old", now_ms - OLD_MS, 7),
            )[n % 3]
            for n in range(count)
        ]

    def _taken(self, now_ms: int) -> bytes:
        n = self.kinds["taken"]
        self.kinds["taken"] += 1
        return self._event(str(n), now_ms, '{"n": 1}', 0)


@with_mutant("dedup_without_tenant")
def test_anothers_bad_input_changes_nothing(tmp_path: Path, seed: int, mutant: str) -> None:
    """Every pane, and the account: the same lines of the one, alone and beside the other's."""
    at_ms = SystemClock().now_ms() // PANE_MS * PANE_MS
    panes, account = run(tmp_path / "alone", seed, at_ms)
    beside_panes, beside_account = run(tmp_path / "beside", seed, at_ms, beside=True, mutant=mutant)

    assert len(panes) > 1_000
    assert account["counted"] >= 0.8 * LINES
    keys = panes.keys() | beside_panes.keys()
    different = [key for key in keys if panes.get(key) != beside_panes.get(key)]
    with judged(mutant):
        assert beside_account == account, "the account beside another must be that of the run alone"
        assert different == [], "panes beside another must be those of the run alone"


def run(
    folder: Path, seed: int, at_ms: int, *, beside: bool = False, mutant: str = ""
) -> tuple[dict[Any, tuple[Any, ...]], Counter[str]]:
    """Return what the first tenant is served of its lines: panes, and events by disposition.

    Args:
        folder: Where everything of it is kept.
        seed: Of the lines.
        at_ms: The present of the first tenant's lines.
        beside: Whether the other one sends, too: from before the first does, and beside it.
        mutant: Of ingest, "" for none.
    """
    folder.mkdir()
    # Only the tenant's own metric is compared, of another load.
    with scene(folder, seed, lasting=False, sketched=False, mutants={"ingest": mutant}) as here:
        here.load.pause()
        rig = here.rig
        keys = {tenant: key_for(rig, tenant) for tenant in ("first", "acme")}
        for key in keys.values():
            define_mixed(rig, key)
        first = MixedLoad(rig.ingest_url, keys["first"], seed, "first", LINES, at_ms=at_ms)
        other = Junk(rig.ingest_url, keys["acme"], seed, "acme", LINES, batch=500)
        loads = [other, first] if beside else [first]
        if beside:
            other.start()
            # Who takes an identity first counts, if tenants are not told apart.
            await_end([other], 0.3, PATIENCE_S)
        first.start()
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
