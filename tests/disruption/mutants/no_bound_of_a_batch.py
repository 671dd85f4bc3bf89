"""D20: Spark reads everything there is at once: no `maxOffsetsPerTrigger`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.panes.session:source_options"

Options = Callable[..., dict[str, str]]


def mutate(original: Options) -> Options:
    """Return the source's options without the bound."""

    def source_options(*told: Any) -> dict[str, str]:
        options = original(*told)
        del options["maxOffsetsPerTrigger"]
        return options

    return source_options
