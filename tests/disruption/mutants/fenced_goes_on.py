"""D4: a fence is only a number in Redis: whoever is overtaken takes the next one, and goes on."""

from __future__ import annotations

from collections.abc import Callable

from weir.commit import Verdict

TARGET = "weir_analytics.panes.recovery:VerdictError.__init__"

Init = Callable[[Exception, Verdict, str], None]


def mutate(original: Init) -> Init:
    """Return an error that never says FENCED: the driver begins again at S0."""

    def init(self: Exception, verdict: Verdict, message: str) -> None:
        original(self, Verdict.LOST if verdict is Verdict.FENCED else verdict, message)

    return init
