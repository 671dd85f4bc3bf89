"""The examples of docs/reference.md, applied as they stand, and counted."""

from __future__ import annotations

import http.client
import math
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from test_terminal import weir
from weblog import iso
from weir.definitions.text import parse_text
from weir_local.client import ApiClient, ApiError
from weir_local.reference import EXAMPLES
from weir_local.testing import TestStack

ORDERS = [
    (["NZ", "AU", "DE"][n % 3], float(n % 7 * 100 + n % 3 - 50), n % 5 == 4) for n in range(300)
]
"""Country, total, and whether another source sends it; a total may be below 0."""
CHANNEL = "https://hooks.example.com/weir"


@pytest.mark.stack
def test_the_examples_are_counted(own_stack: TestStack, tmp_path: Path) -> None:
    """All kinds go into one folder and hold together; each tile of the board has its numbers."""
    stack = own_stack
    for kind, text in EXAMPLES.items():
        # Messages of this stack go nowhere.
        (tmp_path / f"{kind}.yaml").write_text(text.replace(CHANNEL, "http://127.0.0.1:9/weir"))
    code, written, errors = weir(stack, "apply", "-f", tmp_path)
    assert code == 0, errors
    assert written.count("created") == len(EXAMPLES)
    progress = "/definitions/metric/order_value/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"], "the metric counted", 60)
    web = stack.api("POST", "/keys", {"label": "web", "scopes": ["ingest"], "source": "web"})
    sent: dict[str, list[float]] = defaultdict(list)
    at = iso(time.time_ns() // 1_000_000)
    items: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for n, (country, total, by_other) in enumerate(ORDERS):
        items[by_other].append(
            {
                **{"specversion": "1.0", "id": f"order-{n}", "source": "shop", "time": at},
                **{"type": "shop.order", "data": {"country": country, "total": total}},
            }
        )
        if total > 0 and not by_other:
            sent[country].append(total)
    with closing(ApiClient(stack.ingest_url, web.body["key"], patience_s=60)) as client:
        stack.wait_until(lambda: is_taken(client, items[False]), "the key known to ingest")
    stack.post(items[True])

    metric = parse_text(EXAMPLES["metric"])
    stack.wait_until(
        lambda: sum(asked(stack, "count").values()) == sum(map(len, sent.values())), "orders", 60
    )
    exact = {
        "count": {country: len(of) for country, of in sent.items()},
        "sum": {country: sum(of) for country, of in sent.items()},
        "avg": {country: sum(of) / len(of) for country, of in sent.items()},
        "p50": {country: nearest_rank(of, 0.5) for country, of in sent.items()},
        "p95": {country: nearest_rank(of, 0.95) for country, of in sent.items()},
    }
    assert set(exact) == set(metric["aggregates"])
    assert {name: asked(stack, name) for name in exact} == {
        name: pytest.approx(of) for name, of in exact.items()
    }
    tiles = [one for one in parse_text(EXAMPLES["board"])["tiles"] if "metric" in one]
    for tile in tiles:
        for aggregate in tile.get("aggregates") or [tile["aggregate"]]:
            assert asked(stack, aggregate, tile["metric"]), tile
    rules = stack.api("GET", "/definitions/rule/dear_orders/progress").body
    assert (rules["active"], rules["refused"]) == (True, None)


def is_taken(client: ApiClient, events: list[dict[str, Any]]) -> bool:
    """Post events; tell whether ingest has read of the key that was made just now."""
    try:
        client.post_events(events)
    except ApiError as error:
        if error.status != http.client.UNAUTHORIZED:
            raise
        return False
    return True


def asked(stack: TestStack, aggregate: str, metric: str = "order_value") -> dict[str, float]:
    """Return an aggregate by country over the last ten minutes, as one window."""
    now_ms = time.time_ns() // 1_000_000
    end_ms = now_ms // 60_000 * 60_000 + 60_000
    span = {"from": iso(end_ms - 600_000), "to": iso(end_ms)}
    window = {"window": {"kind": "tumbling", "length": "10m"}, "step": "10m"}
    query = {"metric": metric, "aggregate": aggregate, "by": ["country"], "range": span, **window}
    series = stack.query(query)["series"]
    return {one["by"]["country"]: one["value"][0] for one in series if one["value"][0] is not None}


def nearest_rank(values: list[float], q: float) -> float:
    """Return a percentile of all values."""
    return sorted(values)[math.ceil(q * len(values) - 1e-9) - 1]
