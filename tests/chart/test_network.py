"""Who may open a connection to whom: the policies against one table."""

from __future__ import annotations

import pytest
from chart.manifests import executors, named, of_kind, selects, workloads
from weir_chart import golden
from weir_chart.render import Object, Release, Workbench

SERVERS = {"ingest", "analytics", "alerts", "dashboard"}
# Who may open a connection to whom, and where; "world" is anybody, "watcher" who scrapes.
EDGES = {
    ("world", "ingest", 8080),
    ("world", "dashboard", 8080),
    *(("watcher", name, 9090) for name in SERVERS),
    *((name, "redis", 6379) for name in SERVERS),
    *((name, "kafka", 9092) for name in (*SERVERS, "topics")),
    *((name, service, 8080) for name in ("apply", "check") for service in ("ingest", "dashboard")),
    ("alerts", "world", 443),
}
# And these where executors count: they report to the driver, fetch data of each other, and the
# driver asks the cluster's API for them.
OF_EXECUTORS = {
    ("executor", "analytics", 7078),
    ("executor", "analytics", 7079),
    ("analytics", "executor", 7079),
    ("executor", "executor", 7079),
    ("executor", "redis", 6379),
    ("executor", "kafka", 9092),
    ("analytics", "world", 6443),
}


@pytest.mark.parametrize(
    ("name", "edges"), [("default", EDGES), ("executors", EDGES | OF_EXECUTORS)]
)
def test_network_is_closed_but_for_the_table(
    renders: dict[str, list[Object]], name: str, edges: set[tuple[str, str, int]]
) -> None:
    """The policies allow the connections of the table and no other."""
    objects = renders[name]
    policies = of_kind(objects, "NetworkPolicy")
    (deny,) = (one for one in policies if one["metadata"]["name"].endswith("-default"))

    assert deny["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in deny["spec"]
    assert [set(rule) for rule in deny["spec"]["egress"]] == [{"ports"}]
    for one in (*workloads(objects), *executors(objects)):
        assert selects(deny["spec"]["podSelector"]["matchLabels"], one.metadata["labels"])
    outside = {"world", "watcher"}
    # A port for anybody names no sender, so only what is not for anybody tells its callers.
    callers_told = {"redis", "analytics", "executor"}
    assert _incoming(policies) == {
        edge for edge in edges if edge[0] in outside or edge[1] in callers_told
    }
    assert _outgoing(policies) == {edge for edge in edges if edge[0] not in outside}


def test_the_api_is_where_the_cluster_has_it(
    bench: Workbench, renders: dict[str, list[Object]]
) -> None:
    """Its servers' networks can be told; else the driver may reach their usual ports anywhere."""
    sets = ("networkPolicy.api.cidrs=null", "networkPolicy.api.ports={443,6443}")
    anywhere = Release((golden.SETS / "executors-values.yaml",), sets=sets)
    told = named(renders["executors"], "NetworkPolicy", "counts-analytics")["spec"]["egress"]
    untold = named(bench.objects(anywhere), "NetworkPolicy", "counts-analytics")["spec"]["egress"]

    assert told[-1] == {
        "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
        "ports": [{"protocol": "TCP", "port": 6443}],
    }
    assert untold[-1] == {"ports": [{"protocol": "TCP", "port": port} for port in (443, 6443)]}


def _incoming(policies: list[Object]) -> set[tuple[str, str, int]]:
    found = set()
    for policy in policies:
        target = _component(policy["spec"]["podSelector"])
        for rule in policy["spec"].get("ingress", []):
            senders = [_component(one["podSelector"]) for one in rule.get("from", [])] or ["world"]
            found |= {
                (sender or "watcher", target, port["port"])
                for sender in senders
                for port in rule["ports"]
            }
    return found


def _outgoing(policies: list[Object]) -> set[tuple[str, str, int]]:
    found = set()
    for policy in policies:
        sender = _component(policy["spec"]["podSelector"])
        if not sender:
            continue
        for rule in policy["spec"].get("egress", []):
            targets = {_component(one.get("podSelector", {})) or "world" for one in rule["to"]}
            found |= {
                (sender, target, port["port"]) for target in targets for port in rule["ports"]
            }
    return found


def _component(selector: Object) -> str:
    """Return which part of Weir a selector picks; "kafka" is the bundled one, "" all of it."""
    labels = selector.get("matchLabels", {})
    if labels.get("app.kubernetes.io/name") == "kafka":
        return "kafka"
    component: str = labels.get("app.kubernetes.io/component", "")
    return component


def test_alerts_reach_no_private_address(default: list[Object]) -> None:
    """Receivers are public: private and link-local networks are excepted."""
    policy = named(default, "NetworkPolicy", "weir-alerts")
    blocks = [
        target["ipBlock"]
        for rule in policy["spec"]["egress"]
        for target in rule.get("to", [])
        if "ipBlock" in target
    ]
    excepted = {network for block in blocks for network in block["except"]}

    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= excepted
    assert {"fc00::/7", "fe80::/10"} <= excepted


def test_own_brokers_are_told_by_port(renders: dict[str, list[Object]]) -> None:
    """Policies know no host names: brokers and a Redis elsewhere are reached at their ports."""
    policy = named(renders["production"], "NetworkPolicy", "weir-ingest")

    assert policy["spec"]["egress"] == [
        {"ports": [{"protocol": "TCP", "port": 9094}]},
        {"ports": [{"protocol": "TCP", "port": 6380}]},
    ]
