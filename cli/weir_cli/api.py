"""One request to the dashboard's API, tried again where that helps.

No answer, 429 and 502 to 504 are waited out up to a deadline of each request, as long as
`Retry-After` asks, and so is 401 until the first answer of another kind: a new installation stores
its first key a moment after it begins to serve. A 2xx of something else, such as the page of a
sign-on, is no answer: it lacks what each of the dashboard's has (`Weir-Api`). A change beyond the
tenant's quota is waited out also without a deadline: it is only later that it can be made. The same
request sent again is harmless: each write says which version it changes. What makes another thing
each time, a key, is sent once. Redirects are not followed: they would carry the key elsewhere.
"""

from __future__ import annotations

import http.client
import json
import math
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from weir import names

CSV: Final = "text/csv"
TIMEOUT_S = 30.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 4.0
LONGEST_ASKED_S = 60.0
"""The longest that `Retry-After` is obeyed: a wrong one must not hold up a command for hours."""
LONGEST_OVER_QUOTA_S = 3_600.0
"""The longest that a change waits for its quota, all of which has come back after an hour."""
FOLLOWED_S = 60.0
"""How long at least what is followed is asked for again: a dashboard restarts in less, and nobody
should have to come back to a job of an hour because of it."""
LATER = frozenset({429, 502, 503, 504})
LONGER: Final = "--wait waits longer"
UNKNOWN: Final = "whether it is done is not known: look before it is asked for again"
ELSEWHERE: Final = (
    "is this the dashboard? see --url, and whether something asks for a login before it"
)
UNSIGNED: Final = (
    "is this the dashboard, of this release? see --url, and whether a proxy before it takes header"
    " fields away"
)


class UnreachedError(Exception):
    """The dashboard did not answer in time; the text says what it did instead.

    Attributes:
        answer: Its last answer, which asked to come later; None if there was none.
        job: Id of the job that was followed, which goes on; None for none.
    """

    def __init__(self, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer
        self.job: str | None = None

    def error(self) -> dict[str, Any]:
        """Return it as programs read it."""
        told = None if self.answer is None else self.answer.error()
        code = told["code"] if told else "unreached"
        errors = told["errors"] if told else []
        job = {} if self.job is None else {"job": self.job}
        return {"code": code, "message": str(self), "errors": errors, **job}


@dataclass(frozen=True)
class Answer:
    """What the dashboard answered.

    Attributes:
        status: HTTP status.
        body: The decoded JSON; text if it was none.
        retry_after_s: When it asks to come again; None if it does not say.
        over_quota: It refuses a change, since the tenant has made as many as it may.
        location: Where a redirect leads; None for another answer.
        beside: What an answer as lines tells of all of it: `fresh`, `notes` and `of`, where it
            does.
    """

    status: int
    body: Any
    retry_after_s: float | None = None
    over_quota: bool = False
    location: str | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether what was asked is done."""
        return self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def sentence(self) -> str:
        """What it says in words; empty if it says nothing."""
        body = self.body if isinstance(self.body, dict) else {}
        return str(body.get("message") or body.get("detail") or "")

    def error(self) -> dict[str, Any]:
        """Return a refusal as programs read it: code, sentence and places of the dashboard."""
        body = self.body if isinstance(self.body, dict) else {}
        code = str(body.get("code") or f"http_{self.status}")
        return {"code": code, "message": self.told()[0], "errors": body.get("errors") or []}

    def told(self) -> list[str]:
        """Return a refusal in the dashboard's words: a sentence, then one for each place more.

        Below the sentence of a place in an expression stand its line and `^` under the place.
        """
        body = self.body if isinstance(self.body, dict) else {}
        told = [self.sentence or self._wordless()]
        for at, one in enumerate(body.get("errors") or []):
            if at:  # the sentence tells the first
                told.append(told_of(one))
            told += str(one.get("excerpt") or "").splitlines()
        return told

    def _wordless(self) -> str:
        if self.location is None:
            return f"answer {self.status} without words"
        return (
            f"answer {self.status} leads to {self.location}, where the key is not sent; --url must"
            " be the address of the service itself"
        )


def told_of(place: Mapping[str, Any]) -> str:
    """Return what is wrong at a place of a refusal, in a sentence."""
    return (
        f"{place.get('pointer')} must be {place.get('required')}, got {place.get('got')!r}; "
        f"{place.get('mend')}"
    )


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer: followed, it would carry the key elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""
        return


class _Asked(NamedTuple):
    """A request, as `Api.call` has it."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}


class _Tried(NamedTuple):
    """What came of one try.

    Attributes:
        answer: The dashboard's; None if it gave none.
        why: What it did, for the error.
        mend: What to do about it; empty: wait longer.
    """

    answer: Answer | None
    why: str
    mend: str = ""


class Api:
    """The API of one dashboard, with one key."""

    def __init__(self, url: str, key: str, *, wait_s: float, note: Callable[[str], None]) -> None:
        """Prepare it; nothing is sent yet.

        Args:
            url: `http://host:port`, or with https.
            key: API key.
            wait_s: How long each request is tried again.
            note: Called with why a change waits for its quota, once each.
        """
        self._url = f"{url.rstrip('/')}/api/v1"
        self._key = key
        self._wait_s = wait_s
        self._note = note
        self._later = LATER | {HTTPStatus.UNAUTHORIZED}
        self._opener = urllib.request.build_opener(NoRedirects)

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return its answer, also a refusal.

        One over the quota is waited out, and returned if it still is after an hour.

        Args:
            method: Such as "PUT".
            path: What comes after `/api/v1`.
            body: Sent as JSON; None for none.
            headers: More header fields.

        Raises:
            UnreachedError: If no answer came before the deadline, or only such that ask to
                come later.
        """
        asked = _Asked(method, path, body, headers or {})
        return self._within_quota(lambda: self._answered(asked, self._wait_s))

    def make(self, path: str, body: Any) -> Answer:
        """Post what makes another thing each time that it is sent: it is sent once.

        What is waited for is that the dashboard answers at all, before it is sent.

        Args:
            path: What comes after `/api/v1`.
            body: Sent as JSON.

        Raises:
            UnreachedError: As `call` does; it may be made by then, or not.
        """
        seen = self.call("GET", "/session")
        if not seen.is_ok:
            return seen
        asked = _Asked("POST", path, body)
        return self._within_quota(lambda: self._answered(asked, 0.0, mend=UNKNOWN))

    def _within_quota(self, ask: Callable[[], Answer]) -> Answer:
        """Return an answer; one that is over the quota of changes is waited out."""
        answer = ask()
        if answer.over_quota:
            self._note(f"{answer.sentence}; waiting to do so, an hour at most")
        until_s = time.monotonic() + LONGEST_OVER_QUOTA_S
        while answer.over_quota and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(_pause_s(FIRST_PAUSE_S, answer), left_s))
            answer = ask()
        return answer

    def poll(self, path: str, most_s: float = math.inf) -> Answer:
        """Ask how something is that goes on by itself, for a minute at least.

        Args:
            path: What comes after `/api/v1`.
            most_s: What is left of `--timeout`, which goes before.

        Raises:
            UnreachedError: As `call` does.
        """
        wait_s = max(self._wait_s, FOLLOWED_S)
        if most_s < wait_s:
            mend = "--timeout waits longer"
            return self._answered(_Asked("GET", path), max(0.0, most_s), mend=mend)
        return self._answered(_Asked("GET", path), wait_s)

    def _answered(self, asked: _Asked, wait_s: float, *, mend: str = LONGER) -> Answer:
        """Return the first answer that does not ask to come later for another reason.

        Args:
            asked: What is asked.
            wait_s: How long it is tried again.
            mend: What helps if none comes.
        """
        deadline_s = time.monotonic() + wait_s
        pause_s = FIRST_PAUSE_S
        unknown_key: Answer | None = None
        while True:
            tried = self._once(asked)
            answer = tried.answer
            if answer is not None and (answer.over_quota or answer.status not in self._later):
                self._later = LATER
                return answer
            if answer is not None and answer.status == HTTPStatus.UNAUTHORIZED:
                unknown_key = answer
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            # Who tries a wrong key too often is told 429; a right one is taken all the same.
            told = None if unknown_key is not None else answer
            time.sleep(min(_pause_s(pause_s, told), left_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        if unknown_key is not None:
            return unknown_key
        raise self._unreached(tried, wait_s, mend)

    def _unreached(self, tried: _Tried, wait_s: float, mend: str) -> UnreachedError:
        answer = tried.answer
        waited = f" for {wait_s:g} s" if wait_s else ""
        said = f": {answer.sentence}" if answer is not None and answer.sentence else ""
        why = f"{tried.why}{waited}{said}"
        msg = f"the dashboard at {self._url} must answer, {why}; {tried.mend or mend}"
        return UnreachedError(msg, answer)

    def _once(self, asked: _Asked) -> _Tried:
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        payload = None if asked.body is None else json.dumps(asked.body).encode()
        request = urllib.request.Request(  # noqa: S310  the scheme was checked
            self._url + asked.path, payload, {**sent, **asked.headers}, method=asked.method
        )
        try:
            return self._answer(request)
        except urllib.error.URLError as error:
            return _Tried(None, f"could not be reached ({error.reason})")
        except (OSError, http.client.HTTPException) as error:
            return _Tried(None, f"broke off ({error})")

    def _answer(self, request: urllib.request.Request) -> _Tried:
        """Return what is answered, also a refusal, once all of it has come."""
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                return _taken(response, as_csv=request.get_header("Accept") == CSV)
        except urllib.error.HTTPError as error:
            with error:
                again_s = seconds(error.headers.get("Retry-After"))
                policy = error.headers.get("RateLimit-Policy")
                over = error.code == HTTPStatus.TOO_MANY_REQUESTS and _of_changes(policy)
                to = error.headers.get("Location") if error.code < HTTPStatus.BAD_REQUEST else None
                answer = Answer(error.code, decoded(error.read()), again_s, over, to)
            return _Tried(answer, f"answered {error.code}")


def quoted(*parts: str) -> str:
    """Return parts of a path, each quoted, with a slash before each."""
    return "".join(f"/{urllib.parse.quote(part, safe='')}" for part in parts)


def _taken(response: http.client.HTTPResponse, *, as_csv: bool) -> _Tried:
    """Return a 2xx of the form that was asked for; another, or another's, is no answer."""
    kind, told = response.headers.get_content_type(), _beside(response.headers)
    read = response.read()
    body: Any = read.decode("utf-8", "replace") if as_csv else decoded(read)
    got, version = f"answered {response.status} with {kind}", response.headers.get(names.HTTP_API)
    if version not in (None, names.API_VERSION):
        mend = f"this weir knows version {names.API_VERSION} of the API; update it"
        return _Tried(None, f"{got}, version {version} of the API", mend)
    if not (kind == CSV if as_csv else isinstance(body, dict)):
        return _Tried(None, f"{got} in place of {'CSV' if as_csv else 'a JSON object'}", ELSEWHERE)
    if version is None:
        return _Tried(None, f"{got} and without the header field {names.HTTP_API}", UNSIGNED)
    return _Tried(Answer(response.status, body, beside=told), "answered")


def _pause_s(own_s: float, answer: Answer | None) -> float:
    """Return how long to wait: as long as was asked, within bounds, or by our own measure."""
    asked_s = answer.retry_after_s if answer is not None else None
    return own_s if asked_s is None else max(own_s, min(asked_s, LONGEST_ASKED_S))


def seconds(text: str | None) -> float | None:
    """Return a `Retry-After` in seconds; a date, as proxies may send it, is passed over."""
    return float(text) if text and text.isascii() and text.isdigit() else None


def _of_changes(policy: str | None) -> bool:
    """Tell whether an answer is about the quota of changes: others are refused with 429 too."""
    return policy is not None and policy.startswith('"changes"')


def _beside(headers: http.client.HTTPMessage) -> dict[str, Any]:
    """Return what header fields tell of an answer as lines; those that are not there are left."""
    told = {name: headers.get(f"Weir-{name.title()}") for name in ("fresh", "notes", "of")}
    return {name: decoded(text.encode()) for name, text in told.items() if text is not None}


def decoded(text: bytes) -> Any:
    """Return a body: the decoded JSON, or text if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")
