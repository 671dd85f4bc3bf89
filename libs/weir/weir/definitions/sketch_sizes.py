"""Sizes of a metric's sketches: what exactness costs, where the usual does not fit.

Each size has a default that suits most metrics. A larger one makes bounds narrower and
rows longer; every answer states the bound that it gives.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from weir.definitions.base import Model
from weir.frequent import TOP_LG_K
from weir.sets import THETA_LG_K
from weir.sketches import HLL_LG_K

MAX_KLL_K: Final = 16_000
# Of HLL a row keeps at most 65,535 bytes, and 2^16 registers are more.
MAX_HLL_LG_K: Final = 15


class SketchSizes(Model):
    """How large the sketches of one metric are.

    Attributes:
        kll_k: Of percentiles. Left out, the least that carries those that are asked.
        hll_lg_k: Of `distinct`: 2^lgK registers, a byte each.
        theta_lg_k: Of `theta`: up to 2^lgK hashes of 8 bytes.
        top_lg_k: Of `top`: counters for up to three quarters of 2^lgK texts.
    """

    kll_k: Annotated[int, Field(ge=8, le=MAX_KLL_K)] | None = None
    hll_lg_k: Annotated[int, Field(ge=8, le=MAX_HLL_LG_K)] = HLL_LG_K
    theta_lg_k: Annotated[int, Field(ge=8, le=16)] = THETA_LG_K
    top_lg_k: Annotated[int, Field(ge=6, le=14)] = TOP_LG_K


USUAL_SIZES: Final = SketchSizes()
