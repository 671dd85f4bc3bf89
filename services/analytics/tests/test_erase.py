"""Erasures that wait: when metrics are counted again, and what it costs to ask each of them."""

from __future__ import annotations

import json
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.job import Erase
from weir.definitions.jobs import job_named
from weir.definitions.records import Edit, NewRecord, delete_record, put_record
from weir_analytics.jobs.count_again import BY
from weir_analytics.jobs.erase import EraseTask, Tenants, counted_again_ms
from weir_analytics.jobs.task import NotNowError

TEXT = "kind: metric\nname: {}\nevents: {{type: t}}"
NOW_MS = 1_000


class History:
    """Metrics of two tenants, edited by people and by jobs of one kind or another."""

    def __init__(self, seed: int = 0) -> None:
        self.drawing = Random(seed)  # noqa: S311  drawn to be repeated
        self.fold = Definitions()

    def put(self, tenant: str, kind: str, name: str, text: str, by: str, at_ms: int = 0) -> None:
        """Write a version."""
        number = self.fold.version(tenant, kind, name)
        self._add(put_record(Edit(tenant, kind, name, number, by, at_ms), text))

    def job(self, tenant: str, name: str, *, erases: bool = True) -> None:
        """Ask for a job."""
        do = {"job": "erase", "subject_hash": "0" * 64} if erases else {"job": "audit"}
        self.put(tenant, "job", name, json.dumps({"do": do}), "key:1")

    def step(self) -> None:
        """Write one thing or another."""
        tenant, name = self.drawing.choice(("acme", "zeta")), self.drawing.choice("mno")
        job = self.drawing.choice("jkl")
        what = self.drawing.randrange(6)
        if what == 0:
            self.job(tenant, job, erases=self.drawing.random() < 0.7)
        elif what == 1:
            kind, which = self.drawing.choice((("metric", name), ("job", job)))
            if self.fold.get(tenant, kind, which) is not None:
                number = self.fold.version(tenant, kind, which)
                by = self.drawing.choice(("key:1", f"{BY}{job}"))
                self._add(delete_record(Edit(tenant, kind, which, number, by, NOW_MS)))
        else:
            by = f"{BY}{job}" if what > 2 else "key:1"
            text = TEXT.format(name) if self.drawing.random() < 0.9 else "of: a later release"
            self.put(tenant, "metric", name, text, by, self.drawing.randint(0, 2 * NOW_MS))

    def _add(self, record: NewRecord) -> None:
        change = self.fold.apply(self.fold.next_offset, *record)
        assert change is not None
        assert change.applied, change.note


def slow_counted_again_ms(fold: Definitions, tenant: str, now_ms: int, but: str) -> int:
    """Return when metrics were last counted again for another erasure, by all that ever were."""

    def erases(version: Definition) -> bool:
        job = job_named(fold, version.tenant, version.by.removeprefix(BY))
        is_erasure = job is not None and isinstance(job.model.do, Erase)
        return version.by.startswith(BY) and is_erasure

    made = (
        one
        for metric in fold.current(tenant, "metric")
        for one in fold.history(tenant, "metric", metric.name)
        if one.by != f"{BY}{but}" and one.at_ms <= now_ms
    )
    return max((one.at_ms for one in made if erases(one)), default=0)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_as_if_each_version_were_looked_at(seed: int) -> None:
    """Whoever made them, deleted ones too, and with clocks that were wrong."""
    history, tenants = History(seed), Tenants()
    for _ in range(40):
        history.step()
        for tenant in ("acme", "zeta"):
            for but in "jkl":
                for now_ms in (NOW_MS, 2 * NOW_MS, 0):
                    found = counted_again_ms(tenants.of(history.fold, tenant), now_ms, but)
                    slow = slow_counted_again_ms(history.fold, tenant, now_ms, but)
                    assert found == slow


def ask_each(fold: Definitions, tenants: Tenants, names: list[str]) -> set[str]:
    """Ask erasures whether they go on; return what they wait for."""
    cycle: Any = SimpleNamespace(
        stores=SimpleNamespace(definitions=SimpleNamespace(fold=fold)),
        settings=SimpleNamespace(shards=1, erase_hours=24),
        clock=SimpleNamespace(now_ms=lambda: NOW_MS),
    )
    found = set()
    for name in names:
        asked = job_named(fold, "acme", name)
        assert asked is not None
        with pytest.raises(NotNowError) as caught:
            EraseTask(cycle.settings, asked, tenants).step(cycle, lambda: False)
        found.add(str(caught.value))
    return found


@pytest.mark.parametrize("past", [5, 200])
def test_who_waits_looks_at_histories_once_a_record(
    past: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds wait for a day, and each is asked again and again."""
    history, tenants = History(), Tenants()
    history.job("acme", "before")
    for name in ("one", "two"):
        for n in range(past):
            history.put("acme", "metric", name, TEXT.format(name), f"{BY}before", n)
    waiting = [f"e{n}" for n in range(50)]
    for name in waiting:
        history.job("acme", name)
    looked, real = list[str](), Definitions.history

    def history_of(fold: Definitions, tenant: str, kind: str, name: str) -> list[Definition]:
        if kind == "metric":
            looked.append(name)
        return real(fold, tenant, kind, name)

    monkeypatch.setattr(Definitions, "history", history_of)
    (why,) = ask_each(history.fold, tenants, waiting)
    assert why.startswith("metrics are counted again at 1970-01-02T00:00")
    assert looked == ["one", "two"]
    history.put("zeta", "metric", "x", TEXT.format("x"), "key:1")
    ask_each(history.fold, tenants, waiting)
    assert looked == ["one", "two"] * 2
