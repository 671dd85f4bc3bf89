"""Every name that crosses a boundary: topics, record headers, Redis keys.

Written here and nowhere else, so that a name can be found, and changed, in one
place. Redis keys carry the version of their layout (`weir:1:`). Everything that
one commit changes in a shard carries the shard's hash tag and so lives in one
slot of a cluster.
"""

from __future__ import annotations

# ── Kafka topics ────────────────────────────────────────────────────────────
EVENTS = "weir.events"
QUARANTINE = "weir.quarantine"
DEFINITIONS = "weir.definitions"
ALERTS = "weir.alerts"
CORRECTIONS = "weir.corrections"

# The consumer group whose offsets say to Kafka's own tools how far the driver has counted.
PANES_GROUP = "weir-panes"

# ── header fields of HTTP ───────────────────────────────────────────────────
# Each answer of the dashboard that is no error of its own says of which API it is: by it a client
# tells it from what else may answer at an address.
HTTP_API = "weir-api"
API_VERSION = "1"

# ── record headers ──────────────────────────────────────────────────────────
# On `weir.events` the FIRST header tells what a record is, so that Spark looks
# at one array element and never searches: content-type (an event), weir-tail (an
# event that the live tail sampled), weir-reason (a refused item), weir-tick.
HEADER_CONTENT_TYPE = "content-type"
HEADER_TAIL = "weir-tail"
HEADER_REASON = "weir-reason"
HEADER_TICK = "weir-tick"
HEADER_TENANT = "weir-tenant"
HEADER_SOURCE = "weir-source"
HEADER_ORIGIN = "weir-origin"
HEADER_VERSION = "weir-version"
HEADER_AT = "weir-at"
HEADER_LENGTH = "weir-length"
HEADER_SHA256 = "weir-sha256"
HEADER_MAPPING = "weir-mapping"
HEADER_LEFT_OUT = "weir-left-out"
# On `weir.quarantine`: this is no copy, but says that the record of its key was put back.
HEADER_REPLAYED = "weir-replayed"
CLOUDEVENT_JSON = b"application/cloudevents+json; charset=UTF-8"

# ── Redis: what one commit changes in a shard ───────────────────────────────
PREFIX = "weir:1:"
LIVE_LANE = "live"


def shard_prefix(shard: int) -> str:
    """Return what every key of a shard begins with."""
    return f"{PREFIX}{{s{shard}}}:"


def fence_key(shard: int) -> str:
    """Return the key of the shard's fence."""
    return f"{shard_prefix(shard)}fence"


def token_key(shard: int) -> str:
    """Return the key of the token that changes with each commit of the shard."""
    return f"{shard_prefix(shard)}token"


def outbox_key(shard: int) -> str:
    """Return the key of the shard's outbox: panes changed and corrections."""
    return f"{shard_prefix(shard)}outbox"


def mark_key(shard: int, lane: str = LIVE_LANE) -> str:
    """Return the key of a lane's mark: how far the shard has counted."""
    return f"{shard_prefix(shard)}mark:{lane}"


def pane_key(shard: int, vid: int, res_s: int, start_s: int) -> str:
    """Return the key of one pane's hash: short series id -> packed row."""
    return f"{shard_prefix(shard)}p:{vid}:{res_s}:{start_s}"


def ids_key(shard: int, vid: int) -> str:
    """Return the key of the hash: series digest (16 bytes) -> short id."""
    return f"{shard_prefix(shard)}ids:{vid}"


def names_key(shard: int, vid: int) -> str:
    """Return the key of the hash: short id -> series text."""
    return f"{shard_prefix(shard)}names:{vid}"


def listed_key(shard: int, vid: int, owner: str) -> str:
    """Return the key of the set: short ids of one owner's series, where a version lists them."""
    return f"{shard_prefix(shard)}listed:{vid}:{owner}"


def redacted_key(shard: int) -> str:
    """Return the key of the set of erasures that no name in the shard's panes is about."""
    return f"{shard_prefix(shard)}redacted"


def uncolored_key(shard: int) -> str:
    """Return the key of the set of erasures whose color slots were deleted after those names."""
    return f"{shard_prefix(shard)}uncolored"


def trial_key(shard: int) -> str:
    """Return the key by which a driver tries whether the shard takes writes."""
    return f"{shard_prefix(shard)}trial"


# ── Redis: elsewhere ────────────────────────────────────────────────────────
BATCHES = f"{PREFIX}batches"


def part_key(name: str, instance: str) -> str:
    """Return the key of a process's heartbeat."""
    return f"{PREFIX}part:{name}:{instance}"


def tail_key(tenant: str) -> str:
    """Return the key of a tenant's live tail (a capped stream)."""
    return f"{PREFIX}tail:{tenant}"


def slots_key(tenant: str, metric: str) -> str:
    """Return the key of the colour slots given to a metric's series."""
    return f"{PREFIX}slots:{tenant}:{metric}"


def job_key(vid: int) -> str:
    """Return the key of a job's progress and outcome, by the offset of its record."""
    return f"{PREFIX}job:{vid}"


def used_key(tenant: str) -> str:
    """Return the key of the hash: id of an API key of a tenant -> when it was last used."""
    return f"{PREFIX}used:{tenant}"


def session_key(digest: str) -> str:
    """Return the key of a signed-in session, by the digest of its cookie."""
    return f"{PREFIX}session:{digest}"


def once_key(digest: str) -> str:
    """Return the key of a single-use sign-in token, by its digest."""
    return f"{PREFIX}once:{digest}"
