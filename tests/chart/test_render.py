"""The chart is sound to Helm, renders to what is on record, and refuses what cannot work."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from chart.manifests import named, of_kind
from weir_chart import golden, schema
from weir_chart.render import CHART, Object, Release, RenderError, Workbench, read_all

# As Helm's client writes a dependency before it hashes it.
ORDER = ("name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias")
BAD = sorted(golden.BAD.glob("*.yaml"))


def test_lint_finds_nothing(bench: Workbench, values: Path) -> None:
    """Helm's strict lint finds no fault in any set."""
    assert "0 chart(s) failed" in bench.lint(Release((values,)))


def test_render_is_on_record(bench: Workbench, values: Path) -> None:
    """Each set renders to its golden file; `make chart` writes them anew."""
    recorded = golden.golden_of(values).read_text()

    assert golden.golden_text(bench, values) == recorded


def test_every_golden_file_has_its_set() -> None:
    """No golden file is left of a set that is gone."""
    assert {path.name for path in golden.GOLDEN.iterdir()} == {
        golden.golden_of(path).name for path in golden.sets()
    }


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_refusal_says_what_to_do(bench: Workbench, path: Path) -> None:
    """Values that cannot work are refused, with the sentence that stands in their file."""
    expected = path.read_text().splitlines()[0].removeprefix("# expect: ")

    with pytest.raises(RenderError) as refusal:
        bench.template(Release((path,)))

    assert expected in str(refusal.value)


def test_all_faults_are_told_at_once(bench: Workbench) -> None:
    """Two contradictions are both named, so that one try mends both."""
    release = Release(sets=("kafka.enabled=false", "analytics.replicaCount=2"))

    with pytest.raises(RenderError) as refusal:
        bench.template(release)

    assert "externalKafka.brokers must name" in str(refusal.value)
    assert "analytics.replicaCount must be 1, got 2" in str(refusal.value)


def test_schema_is_that_of_the_settings() -> None:
    """The schema on record is the one that the settings classes give; `make chart` writes it."""
    assert schema.SCHEMA.read_text() == schema.text()


def test_every_setting_can_be_reached() -> None:
    """What `config` takes, and what the chart gives itself, are together all settings."""
    recorded = json.loads(schema.SCHEMA.read_text())["properties"]
    for component, kind in schema.SETTINGS.items():
        taken = set(recorded[component]["properties"]["config"]["properties"])
        given = {name for name, field in kind.model_fields.items() if name not in taken}

        assert taken <= set(kind.model_fields)
        assert all(
            name in schema.GIVEN | schema.OF_EXECUTORS or name.endswith("_dir") for name in given
        )


def test_lock_is_of_this_dependency() -> None:
    """Chart.lock's digest is that of the dependency in Chart.yaml; lint does not look."""
    (chart,) = read_all((CHART / "Chart.yaml").read_text())
    (lock,) = read_all((CHART / "Chart.lock").read_text())
    asked = [{key: one[key] for key in ORDER if one.get(key)} for one in chart["dependencies"]]
    locked = [{key: one[key] for key in ORDER[:3]} for one in asked]
    text = json.dumps([asked, locked], separators=(",", ":")).encode()

    assert lock["digest"] == f"sha256:{hashlib.sha256(text).hexdigest()}"


def test_no_key_comes_twice_in_values() -> None:
    """No file of values has a key twice, of which a reader would take one."""
    for path in (CHART / "values.yaml", *golden.sets(), *BAD):
        read_all(path.read_text())


def test_two_renders_differ_in_secrets_only(bench: Workbench) -> None:
    """Nothing but the Secrets is random, so that an upgrade restarts nothing for nothing."""
    first, second = (bench.objects(Release()) for _ in range(2))

    assert [_without_data(one) for one in first] == [_without_data(one) for one in second]
    assert of_kind(first, "Secret") != of_kind(second, "Secret")


def _without_data(found: Object) -> Object:
    shown = copy.deepcopy(found)
    if shown["kind"] == "Secret":
        shown["data"] = None
    return shown


@pytest.mark.parametrize(
    ("release", "kafka", "address"),
    [
        ("weir", {}, "weir-kafka:9092"),
        ("my-kafka", {}, "my-kafka:9092"),
        ("weir", {"nameOverride": "log"}, "weir-log:9092"),
        ("weir", {"fullnameOverride": "brokers"}, "brokers:9092"),
    ],
)
def test_kafka_is_where_its_chart_puts_it(
    bench: Workbench, release: str, kafka: dict[str, str], address: str
) -> None:
    """The bundled brokers' name follows the rule of their chart."""
    sets = tuple(f"kafka.{name}={value}" for name, value in kafka.items())

    ingest = _container(bench.objects(Release(name=release, sets=sets)), "ingest")

    assert {"name": "WEIR_INGEST_KAFKA_BOOTSTRAP", "value": address} in ingest["env"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("ingest.config.max_body_bytes=1048576", ("WEIR_INGEST_MAX_BODY_BYTES", "1048576")),
        ("ingest.config.quota_events_per_s=0", ("WEIR_INGEST_QUOTA_EVENTS_PER_S", "0")),
        ("analytics.config.reshard=true", ("WEIR_ANALYTICS_RESHARD", "true")),
        ("alerts.config.allowed_hosts={a,b}", ("WEIR_ALERTS_ALLOWED_HOSTS", "a,b")),
        ("dashboard.config.ingest_url=http://x", ("WEIR_DASHBOARD_INGEST_URL", "http://x")),
        ("topics.config.events_days=30", ("WEIR_TOPICS_EVENTS_DAYS", "30")),
    ],
)
def test_setting_becomes_a_variable(bench: Workbench, given: str, told: tuple[str, str]) -> None:
    """A value of `config` reaches the service as text that its settings class reads."""
    objects = bench.objects(Release(sets=(given,)))

    variables = _container(objects, given.partition(".")[0])["env"]

    assert {"name": told[0], "value": told[1]} in variables


def test_numbers_of_a_file_are_written_out(renders: dict[str, list[Object]]) -> None:
    """A number from a file of values reaches the service in digits, never as 1.048576e+06."""
    variables = _container(renders["production"], "ingest")["env"]

    assert {"name": "WEIR_INGEST_MAX_BODY_BYTES", "value": "1048576"} in variables
    assert {"name": "WEIR_INGEST_DELIVERY_TIMEOUT_S", "value": "3.5"} in variables


def test_own_brokers_hold_three_replicas(renders: dict[str, list[Object]]) -> None:
    """One bundled broker holds one replica; your own brokers hold three, unless told otherwise."""
    name = "WEIR_TOPICS_REPLICATION_FACTOR"

    for render, replicas in (("default", "1"), ("production", "3")):
        variables = _container(renders[render], "topics")["env"]
        assert {"name": name, "value": replicas} in variables


def test_changed_topics_are_a_new_job(bench: Workbench) -> None:
    """Another size of a topic is another Job; anything else leaves the Job alone."""
    names = [
        _job_name(bench.objects(Release(sets=sets)))
        for sets in ((), ("ingest.config.linger_ms=9",), ("topics.config.events_days=30",))
    ]

    assert names[0] == names[1]
    assert names[0] != names[2]


def _job_name(objects: list[Object]) -> str:
    (job,) = of_kind(objects, "Job")
    name: str = job["metadata"]["name"]
    return name


def _container(objects: list[Object], component: str) -> Any:
    """Return the one container of a component."""
    for one in objects:
        labels = one["metadata"].get("labels", {})
        if labels.get("app.kubernetes.io/component") == component and "template" in one.get(
            "spec", {}
        ):
            return one["spec"]["template"]["spec"]["containers"][0]
    msg = f"no pods of {component}"
    raise AssertionError(msg)


def test_notes_name_what_is_there(bench: Workbench, values: Path) -> None:
    """Every object that the notes speak of is one that was installed."""
    release = Release((values,))
    objects, notes = bench.objects(release), bench.notes(release)
    kinds = {"statefulset": "StatefulSet", "deployment": "Deployment", "svc": "Service"}

    spoken = re.findall(r"\b(statefulset|deployment|svc)/([a-z0-9-]+)", notes)

    assert len(spoken) >= 3
    for kind, name in spoken:
        assert named(objects, kinds[kind], name)
    secret = re.search(r"get secret ([a-z0-9-]+)", notes)
    assert secret is not None
    own = {one["metadata"]["name"] for one in of_kind(objects, "Secret")}
    assert secret[1] in own or f"existingSecret: {secret[1]}" in values.read_text()
