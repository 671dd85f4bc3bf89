"""Mint the single-use link that signs a browser in."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from weir_local.client import ApiClient
from weir_local.services import addresses

if TYPE_CHECKING:
    from weir_local.home import Home


def sign_in_link(home: Home, page: str | None = None) -> str:
    """Return an address that signs in once, within 10 minutes, and goes on to a page.

    The token is in the fragment: browsers do not send it, so no log has it.

    Raises:
        ApiError: If the dashboard refused to make a token.
        TimeoutError: If it did not answer.
    """
    known = addresses(home)
    client = ApiClient(known["WEIR_DASHBOARD_URL"], known["WEIR_API_KEY"], patience_s=20)
    try:
        answer = client.call("POST", "/api/v1/session/once", {})
    finally:
        client.close()
    to = f"?to={quote(page)}" if page else ""
    return f"{known['WEIR_DASHBOARD_URL']}/login{to}#once={answer.body['once']}"
