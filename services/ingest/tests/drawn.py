"""What property tests draw.

One strategy for all of them: of two that are equal, Hypothesis takes parts of the one for the
other's.
"""

from __future__ import annotations

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text('aé"\\{}[],:&=%+\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)
"""Values with whatever ends, quotes and escapes them in JSON, in forms and in queries."""
