"""The kinds of definition. A new kind is a model in a file of its own, and its line here."""

from __future__ import annotations

from typing import Final

from weir.definitions.base import DefinitionModel
from weir.definitions.board import Board
from weir.definitions.channel import Channel
from weir.definitions.job import Job
from weir.definitions.key import Key
from weir.definitions.metric import Metric
from weir.definitions.rule import Rule
from weir.definitions.silence import Silence
from weir.definitions.source import Source

KINDS: Final[dict[str, type[DefinitionModel]]] = {
    "metric": Metric,
    "rule": Rule,
    "channel": Channel,
    "silence": Silence,
    "board": Board,
    "source": Source,
    "key": Key,
    "job": Job,
}
