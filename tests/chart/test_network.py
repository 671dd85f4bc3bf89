"""Who may open a connection to whom: the policies against one table."""

from __future__ import annotations

from chart.manifests import named, of_kind, selects, workloads
from weir_chart.render import Object

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


def test_network_is_closed_but_for_the_table(default: list[Object]) -> None:
    """The policies allow the connections of the table and no other."""
    policies = of_kind(default, "NetworkPolicy")
    (deny,) = (one for one in policies if one["metadata"]["name"] == "weir-default")

    assert deny["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in deny["spec"]
    assert [set(rule) for rule in deny["spec"]["egress"]] == [{"ports"}]
    for one in workloads(default):
        assert selects(deny["spec"]["podSelector"]["matchLabels"], one.metadata["labels"])
    outside = {"world", "watcher"}
    # A port for anybody names no sender, so only Redis tells its callers.
    assert _incoming(policies) == {
        edge for edge in EDGES if edge[0] in outside or edge[1] == "redis"
    }
    assert _outgoing(policies) == {edge for edge in EDGES if edge[0] not in outside}


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
