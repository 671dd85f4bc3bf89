"""The built pages: hashed files are kept for ever by browsers, index.html never.

Every path that is no file and not of the API gets index.html: the page's own router
decides what it shows.
"""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

FOR_EVER = "public, max-age=31536000, immutable"


class Pages:
    """ASGI app that serves the built pages."""

    def __init__(self, folder: Path) -> None:
        self._index = folder / "index.html"
        self._files = StaticFiles(directory=folder, check_dir=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file, or the page."""
        response = await self._respond(scope)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope) -> Response:
        path = scope["path"].lstrip("/")
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("pages are only read\n", 405)
        if path and "." in path.rsplit("/", 1)[-1]:
            return await self._file(path, scope)
        return self._page()

    async def _file(self, path: str, scope: Scope) -> Response:
        try:
            response = await self._files.get_response(path, scope)
        except HTTPException:
            return PlainTextResponse("there is no such file\n", 404)
        if path.startswith("assets/"):
            response.headers["cache-control"] = FOR_EVER
        return response

    def _page(self) -> Response:
        if not self._index.exists():
            return PlainTextResponse("the pages are not built; run `make up`\n", 404)
        return FileResponse(self._index, headers={"cache-control": "no-store"})
