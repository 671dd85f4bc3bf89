"""A small typed language with SQL's spelling, for `where`, `value`, `by` and `distinct`.

`parse.py` turns text into the tree of `tree.py` through an allow-list: what is
not listed there cannot be said, so no text of a user reaches an interpreter.
`evaluate.py` is the meaning of the language, in plain Python; the engine
compiles the same tree to Spark columns, and a property test holds the two equal.
`use.py` says what one metric makes of one event.

Nothing here reads a clock, draws a number or does I/O.
"""

from weir.expressions.evaluate import evaluate
from weir.expressions.parse import ExpressionError, parse_number, parse_path, parse_where
from weir.expressions.paths import Path
from weir.expressions.tree import Kind, Node
from weir.expressions.use import NotMatched, Quarantined, Used, Uses, use

__all__ = [
    "ExpressionError",
    "Kind",
    "Node",
    "NotMatched",
    "Path",
    "Quarantined",
    "Used",
    "Uses",
    "evaluate",
    "parse_number",
    "parse_path",
    "parse_where",
    "use",
]
