"""What an installation made is kept by the next one: passwords, the key of hashes, the first key.

And what its user set: the recipes of UPGRADING.md are run by Helm, over a release of a chart that
had none of the values that came later. There is no cluster here; `installed.py` answers as one.
"""

from __future__ import annotations

import copy
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from chart.installed import Last, cluster
from chart.manifests import of_kind
from ruamel.yaml import YAML
from weir_chart import golden
from weir_chart.render import CHART, Object, Release, Workbench, read_all

TEXT = (CHART / "UPGRADING.md").read_text()
# Values that the chart did not have at first, and one whose default is gone.
LATER = (
    *("networkPolicy.api", "analytics.mode", "analytics.driverAccount", "analytics.executors"),
    *(f"externalKafka.{name}" for name in ("securityProtocol", "sasl", "tls")),
    *(f"{name}.kafkaSecret" for name in ("topics", "ingest", "analytics", "alerts", "dashboard")),
)
GONE = {"analytics": {"config": {"master": "local[2,4]"}}}
TOLD = {"ingest": {"config": {"linger_ms": 9}}, "analytics": {"config": {"max_records": 50000}}}


def recipes() -> list[list[list[str]]]:
    """Return each line of the page's blocks: commands, as words, of which one needs the last."""
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    lines = re.sub(r"\\\n|(?<=&&)\n", " ", "".join(blocks)).splitlines()
    return [[shlex.split(one) for one in line.split("&&")] for line in lines]


UPGRADES = [words for line in recipes() for words in line if words[:2] == ["helm", "upgrade"]]


def secrets(objects: list[Object]) -> dict[str, Object]:
    """Return the content of each Secret by its name."""
    return {one["metadata"]["name"]: one["data"] for one in of_kind(objects, "Secret")}


def test_the_next_installation_changes_no_secret(bench: Workbench, tmp_path: Path) -> None:
    """Helm takes the Secrets up that an uninstallation kept, and renders them as they are."""
    first = bench.objects(Release())

    with cluster(first, tmp_path) as client:
        second = bench.objects(Release(cluster=client))

    assert len(secrets(first)) == 6
    assert secrets(second) == secrets(first)


@pytest.mark.parametrize("lost", ["ingest", "dashboard", "bootstrap", "redis-acl", "alerts"])
def test_a_lost_secret_comes_back_from_the_others(
    bench: Workbench, tmp_path: Path, lost: str
) -> None:
    """What stands in two Secrets survives the loss of one; a password that is lost is new."""
    first = bench.objects(Release())

    with cluster(first, tmp_path, lost) as client:
        second = bench.objects(Release(cluster=client))

    before, after = secrets(first), secrets(second)
    for name in ("ingest", "dashboard"):
        assert after[f"weir-{name}"]["hash_key"] == before[f"weir-{name}"]["hash_key"]
    for name in ("dashboard", "bootstrap"):
        assert after[f"weir-{name}"]["bootstrap_key"] == before[f"weir-{name}"]["bootstrap_key"]
    changed = {name for name in before if before[name] != after[name]}
    had_password = lost in ("ingest", "dashboard", "alerts")
    assert changed == ({f"weir-{lost}", "weir-redis-acl"} if had_password else set())


def first_defaults() -> Object:
    """Return the chart's defaults as they were before the values that came later."""
    (found,) = read_all((CHART / "values.yaml").read_text())
    for path in LATER:
        *folders, last = path.split(".")
        place = found
        for folder in folders:
            place = place[folder]
        del place[last]
    found["analytics"]["config"] |= GONE["analytics"]["config"]
    shown: Object = found
    return shown


def without_tests(objects: list[Object]) -> list[Object]:
    """Return objects as they are compared, without those of `helm test`."""
    kept = [one for one in objects if "helm.sh/hook" not in one["metadata"].get("annotations", {})]
    return sorted((golden.masked(one) for one in kept), key=lambda one: str(one["metadata"]))


@pytest.mark.parametrize("words", UPGRADES, ids=lambda words: " ".join(words[4:]) or "plain")
def test_a_recipe_leaves_what_an_installation_would_make(
    bench: Workbench, renders: dict[str, list[Object]], tmp_path: Path, words: list[str]
) -> None:
    """Over the first chart, Helm renders each command to what one with all values renders to."""
    (chart,) = read_all((CHART / "Chart.yaml").read_text())
    told = tmp_path / "told.yaml"
    YAML().dump(TOLD, told)
    sets = tuple(value for name, value in pairwise(words) if name == "--set")
    first = bench.objects(Release((told,)))

    with cluster([*first, *renders["executors"]], tmp_path, last=_last(chart)) as client:
        upgraded = bench.upgraded(words[2:], client)
        fresh = bench.objects(Release((told,), sets=sets, cluster=client))

    assert without_tests(upgraded) == without_tests(fresh)
    assert without_tests(upgraded) != without_tests(first) or not sets


def _last(chart: Object) -> Last:
    return Last(chart, first_defaults(), copy.deepcopy(TOLD))


def test_no_recipe_takes_old_defaults() -> None:
    """Helm then renders without each value that is new; the flag must not come back."""
    assert "--reuse-values" not in TEXT
    with_values = [words for words in UPGRADES if "--set" in words]
    assert len(with_values) >= 3
    assert all("--reset-then-reuse-values" in words for words in with_values)


def test_an_upgrade_is_tried_before_anything_is_deleted() -> None:
    """What is deleted is deleted for an upgrade, and only if that has passed as a trial."""
    upgraded = [line for line in recipes() if ["helm", "upgrade"] in [one[:2] for one in line]]
    deleted = [
        line for line in recipes() if any("delete" in one and "--force" not in one for one in line)
    ]

    assert len(deleted) == 2
    for line in deleted:
        assert line in upgraded
        assert line[0] == [*line[-1], "--dry-run=server", ">/dev/null"]
