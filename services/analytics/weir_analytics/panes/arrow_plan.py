"""What the tasks of an Arrow plan are told: which versions are counted, and how.

It needs no columns of Spark and is made in a moment. What is told travels as text, so that a
worker reads it once a plan and not once a batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TypeAlias

from weir.definitions.history import Horizons
from weir.definitions.metric import Metric

from weir_analytics.panes.accounts import KEYS
from weir_analytics.panes.arrow_nodes import has_kernel
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.erased import Erased
from weir_analytics.panes.measures import output_type, outputs_of
from weir_analytics.panes.plan import KEPT, Counted, Plan, beyond_from, column_plan
from weir_analytics.panes.versions import Version, version_of


@dataclass(frozen=True)
class Told:
    """What is counted, as a worker needs it.

    Attributes:
        counted: The versions, each with its metric.
        guarded: Whether each event's offset is tested against each version's span.
        erased: Whose events count no more.
        beyond: From where on which age is beyond; see `plan.beyond_from`.
        shards: How many shards there are.
    """

    counted: tuple[Counted, ...]
    guarded: bool
    erased: Erased | None
    beyond: tuple[tuple[Offsets, int], ...]
    shards: int

    def to_json(self) -> str:
        """Return it as one line of text."""
        counted = ((asdict(one.version), one.metric.canonical()) for one in self.counted)
        erased = self.erased
        return json.dumps(
            {
                "counted": list(counted),
                "guarded": self.guarded,
                "erased": erased
                and [sorted(erased.subjects), erased.hash_key.hex(), sorted(erased.later)],
                "beyond": self.beyond,
                "shards": self.shards,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Told:
        """Read what `to_json` wrote."""
        found = json.loads(text)
        erased = None
        if found["erased"] is not None:
            subjects, key, later = found["erased"]
            gone, unseen = (frozenset((t, h) for t, h in of) for of in (subjects, later))
            erased = Erased(gone, bytes.fromhex(key), unseen)
        counted = (
            Counted(version_of(version), Metric.model_validate(metric))
            for version, metric in found["counted"]
        )
        beyond = (({int(p): n for p, n in begin.items()}, ms) for begin, ms in found["beyond"])
        return cls(tuple(counted), found["guarded"], erased, tuple(beyond), found["shards"])


@dataclass(frozen=True, eq=False)
class ArrowPlan:
    """A plan whose tasks count with Arrow and numpy.

    Attributes:
        versions: What is counted.
        told: What the tasks are told; `Told.to_json`. Holds the key of erasures, if there are any.
        outputs: Names of the aggregates after `n`.
    """

    versions: tuple[Version, ...]
    told: str = field(repr=False)
    outputs: tuple[str, ...]

    @property
    def schema(self) -> str:
        """The rows that the tasks leave, as Spark writes it."""
        keys = ("bigint", "string", "bigint", "bigint", "tinyint")
        columns = [*zip(KEYS, keys, strict=True), ("n", "bigint")]
        columns += [(name, output_type(name)) for name in self.outputs]
        return ", ".join(f"{name} {kind}" for name, kind in columns)


AnyPlan: TypeAlias = Plan | ArrowPlan


def arrow_plan(
    counted: Sequence[Counted],
    horizons: Sequence[Horizons],
    *,
    guarded: bool = False,
    erased: Erased | None = None,
    shards: int = 1,
) -> ArrowPlan | None:
    """Return the plan of some versions; None if one asks for what has no kernel.

    The arguments are those of `plan.make_plan`.
    """
    trees = (tree for one in counted for tree in one.metric.trees)
    if not all(map(has_kernel, trees)):
        return None
    told = Told(tuple(counted), guarded, erased, tuple(beyond_from(horizons)), shards)
    return ArrowPlan(
        versions=tuple(one.version for one in counted),
        told=told.to_json(),
        outputs=outputs_of(one.metric for one in counted),
    )


def make_plan(
    counted: Sequence[Counted],
    horizons: Sequence[Horizons],
    *,
    guarded: bool = False,
    erased: Erased | None = None,
    shards: int = 1,
    columns: bool = False,
) -> AnyPlan:
    """Return the plan of some versions: in Arrow, or of Spark's columns.

    Args:
        counted: The versions, each with its metric.
        horizons: By what the range is counted; see `weir.horizons`.
        guarded: See `plan.column_plan`.
        erased: Whose events count no more; None: nobody's.
        shards: How many shards there are.
        columns: Whether it is to be one of columns; so it is also if something has no kernel.
    """
    if not columns:
        plan = arrow_plan(counted, horizons, guarded=guarded, erased=erased, shards=shards)
        if plan is not None:
            return plan
    return column_plan(counted, horizons, guarded=guarded, erased=erased, shards=shards)


@lru_cache(KEPT)
def read_told(told: str) -> Told:
    """Return what a plan's tasks are told; read once a plan and worker."""
    return Told.from_json(told)
