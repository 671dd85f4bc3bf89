"""Your own Kafka: each component is told how it is reached, and mounts what says who it is."""

from __future__ import annotations

import re

import pytest
from chart.manifests import Workload, environment, executors, named, workloads
from ruamel.yaml import YAML
from secured import USERS, users
from weir_chart import golden
from weir_chart.render import Object, Release, Workbench
from weir_local.repository import ROOT

CLIENTS = ("topics", "ingest", "analytics", "alerts", "dashboard")
STRIMZI = ROOT / "infra" / "kubernetes" / "strimzi" / "values.yaml"
LOGIN = {"username": "kafka_user", "password": "kafka_password"}
CERTIFICATE = {"user.crt": "kafka_certificate", "user.key": "kafka_key"}


def client(objects: list[Object], component: str) -> Workload:
    """Return what makes a component's pods."""
    (found,) = (one for one in workloads(objects) if one.component == component)
    return found


def kafka_files(one: Workload) -> dict[str, dict[str, str]]:
    """Return by Secret which of its entries are which files for Kafka."""
    found = {}
    for volume in one.spec["volumes"]:
        for source in volume.get("projected", {}).get("sources", []):
            items = {item["key"]: item["path"] for item in source["secret"].get("items", [])}
            if any(path.startswith("kafka_") for path in items.values()):
                found[source["secret"]["name"]] = items
    return found


def told(one: Workload) -> dict[str, str]:
    """Return a component's settings of Kafka and its folder of secrets."""
    (container,) = one.containers()
    return {
        re.sub(r"^WEIR_[A-Z]+_", "", name).lower(): value
        for name, value in environment(container).items()
        if "KAFKA" in name or name.endswith("SECRETS_DIR")
    }


@pytest.mark.parametrize("component", CLIENTS)
def test_by_user_and_password(renders: dict[str, list[Object]], component: str) -> None:
    """With SASL_SSL all know the brokers' CA; one with a Secret of its own is another user."""
    one = client(renders["production"], component)
    user = "weir-kafka-ingest" if component == "ingest" else "weir-kafka"

    assert kafka_files(one) == {user: LOGIN, "kafka-ca": {"ca.crt": "kafka_ca"}}
    assert told(one) == {
        "kafka_bootstrap": "kafka-0.example.com:9094,kafka-1.example.com:9094,"
        "kafka-2.example.com:9094",
        "kafka_security_protocol": "SASL_SSL",
        "kafka_sasl_mechanism": "SCRAM-SHA-512",
        "secrets_dir": "/run/weir/secrets",
    }


@pytest.mark.parametrize("component", CLIENTS)
def test_by_certificate(renders: dict[str, list[Object]], component: str) -> None:
    """With Strimzi each component shows the certificate of its own user."""
    one = client(renders["ingress-strimzi"], component)

    assert kafka_files(one) == {
        "events-cluster-ca-cert": {"ca.crt": "kafka_ca"},
        f"weir-kafka-{component}": CERTIFICATE,
    }
    assert told(one)["kafka_security_protocol"] == "SSL"
    assert "kafka_sasl_mechanism" not in told(one)


def test_one_certificate_beside_the_user(bench: Workbench) -> None:
    """Brokers that ask for both get both: the certificate is then that of all components."""
    sets = (
        "kafka.enabled=false",
        "externalKafka.brokers=broker:9094",
        "externalKafka.securityProtocol=SASL_SSL",
        "externalKafka.sasl.existingSecret=login",
        "externalKafka.tls.client.existingSecret=certificate",
        "alerts.kafkaSecret=login-of-alerts",
    )

    objects = bench.objects(Release(sets=sets))

    both = {"tls.crt": "kafka_certificate", "tls.key": "kafka_key"}
    assert kafka_files(client(objects, "alerts")) == {"login-of-alerts": LOGIN, "certificate": both}
    assert kafka_files(client(objects, "topics")) == {"login": LOGIN, "certificate": both}


def test_executors_come_as_their_driver(renders: dict[str, list[Object]]) -> None:
    """They read the log by the user, the certificate and the CA of analytics, at the same ports."""
    objects = renders["executors-own"]
    driver, (executor,) = client(objects, "analytics"), executors(objects)
    (found,) = (one for one in executor.spec["volumes"] if one["name"] == "secrets")
    (own,) = (one for one in driver.spec["volumes"] if one["name"] == "secrets")
    places = [
        [one for one in pod.containers()[0]["volumeMounts"] if one["name"] == "secrets"]
        for pod in (driver, executor)
    ]

    assert kafka_files(executor) == {
        "weir-kafka-analytics": LOGIN,
        "kafka-client": {"tls.crt": "kafka_certificate", "tls.key": "kafka_key"},
        "kafka-ca": {"ca.crt": "kafka_ca"},
    }
    # With the password of Redis, and what driver and executors know each other by.
    assert found == own
    assert {one["secret"]["name"] for one in own["projected"]["sources"]} >= {
        "weir-redis",
        "counts-analytics",
    }
    # The paths are those of the driver's settings, which executors are sent.
    assert places[0] == places[1]
    assert places[0][0]["mountPath"] == told(driver)["secrets_dir"]
    for name in ("counts-analytics", "counts-executor"):
        egress = named(objects, "NetworkPolicy", name)["spec"]["egress"]
        assert {"ports": [{"protocol": "TCP", "port": 9094}]} in egress
        assert {"ports": [{"protocol": "TCP", "port": 6380}]} in egress


@pytest.mark.parametrize("component", CLIENTS)
def test_the_bundled_one_asks_nobody(default: list[Object], component: str) -> None:
    """Without a Kafka of your own no pod has anything for one."""
    one = client(default, component)

    assert kafka_files(one) == {}
    assert told(one).keys() <= {"kafka_bootstrap", "secrets_dir"}


def test_the_set_is_as_the_values_for_strimzi(renders: dict[str, list[Object]]) -> None:
    """The set that is on record reaches Kafka as the values that people are told to use."""
    assert "ingress-strimzi" in renders
    read = YAML(typ="safe").load
    values = read(STRIMZI.read_text())
    recorded = read((golden.SETS / "ingress-strimzi-values.yaml").read_text())

    assert {name: recorded[name] for name in values} == values


def test_every_client_has_a_user(renders: dict[str, list[Object]]) -> None:
    """Users for Strimzi are those that the components name, with names as certificates have."""
    named = {
        name
        for component in CLIENTS
        for name in kafka_files(client(renders["ingress-strimzi"], component))
    }
    documents = list(YAML(typ="safe").load_all(USERS.read_text()))

    assert named - {"events-cluster-ca-cert"} == set(users())
    for one in documents:
        assert one["apiVersion"] == "kafka.strimzi.io/v1"
        assert one["metadata"]["labels"] == {"strimzi.io/cluster": "events"}
