"""The descriptions of the API and of the live protocol, made from the models."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from weir_dashboard.live.asyncapi import asyncapi

router = APIRouter(tags=["docs"], include_in_schema=False)


@router.get("/openapi.json")
async def openapi_json(request: Request) -> dict[str, Any]:
    """Return the OpenAPI description."""
    described: dict[str, Any] = request.app.openapi()
    return described


@router.get("/asyncapi.json")
async def asyncapi_json() -> dict[str, Any]:
    """Return the AsyncAPI description of the live socket."""
    return asyncapi()
