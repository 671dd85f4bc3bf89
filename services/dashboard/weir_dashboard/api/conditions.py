"""The conditions of a request: on which version of a definition it builds."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header
from weir.problems import ProblemError, Reason, echo

from weir_dashboard.definitions.writer import Expected

ETAG = re.compile(r'(?:W/)?"(\d{1,18})"')
_Header = Annotated[str | None, Header()]


async def condition(if_match: _Header = None, if_none_match: _Header = None) -> Expected:
    """Return what the conditions of a request say is there.

    Raises:
        ProblemError: 422 if a condition is no version of ours.
    """
    if if_none_match is not None and if_none_match.strip() == "*":
        return Expected(absent=True)
    given = if_match if if_match is not None else if_none_match
    if given is None:
        return Expected()
    found = ETAG.fullmatch(given.strip())
    if found is None:
        msg = f'a condition must be a version in quotes, such as "3", got {echo(given)}'
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    return Expected(version=int(found[1]))


async def if_match_only(if_match: _Header = None) -> Expected:
    """Return what `If-Match` says is there: of what is deleted, something must be.

    Raises:
        ProblemError: 422 if it is no version of ours.
    """
    return await condition(if_match, None)


Condition = Annotated[Expected, Depends(condition)]
IfMatch = Annotated[Expected, Depends(if_match_only)]
