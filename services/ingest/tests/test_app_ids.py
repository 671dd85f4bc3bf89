"""App ids: who may send without a key, and that no tenant takes another's."""

from __future__ import annotations

import json

import pytest
from weir.clock import ManualClock
from weir.definitions.check import check
from weir.definitions.history import Definition
from weir.problems import ProblemError
from weir_ingest.body import Budget, Held
from weir_ingest.key_reader import claimed, keys_of
from weir_ingest.keys import Keys, StoredKey

from .in_process import HASH_KEY


def source(vid: int, tenant: str, name: str, *app_ids: str) -> Definition:
    """Return the definition of a source, written at an offset."""
    text = json.dumps({"kind": "source", "name": name, "app_ids": app_ids})
    return Definition(vid, tenant, "source", name, 1, None, "put", text, "test", 0)


def test_a_source_says_where_its_time_is() -> None:
    """Keys of a source have its `time_field`; those of others, and of other tenants, have none."""
    text = json.dumps({"kind": "source", "name": "web", "time_field": "ts"})
    web = Definition(1, "acme", "source", "web", 1, None, "put", text, "test", 0)
    keys = []
    for name, tenant, kind in (("aaaaaaa1", "acme", "web"), ("aaaaaaa2", "zeta", "web")):
        said = {"kind": "key", "name": name, "hash": "0" * 64, "scopes": ["ingest"], "source": kind}
        keys.append(Definition(2, tenant, "key", name, 1, None, "put", json.dumps(said), "t", 0))

    assert [one.time_field for one in keys_of(keys, [web])] == ["ts", ""]
    assert [one.time_field for one in keys_of(keys, [])] == ["", ""]


def told(owners: dict[str, StoredKey]) -> dict[str, tuple[str, str]]:
    """Return tenant and source by app id."""
    return {app_id: (one.tenant, one.source) for app_id, one in owners.items()}


class TestClaimed:
    def test_each_listed_app_sends_as_its_source(self) -> None:
        """An app id belongs to the tenant and the source that list it, and may only send."""
        owners = claimed({}, [source(1, "acme", "web", "shop", "shop-ios")])

        assert told(owners) == {"shop": ("acme", "web"), "shop-ios": ("acme", "web")}
        assert {one.scopes for one in owners.values()} == {frozenset({"ingest"})}

    def test_the_first_has_it(self) -> None:
        """Of two tenants that list an app id the first one's is it, also when it writes anew."""
        first = claimed({}, [source(1, "zeta", "web", "shop")])
        both = claimed(first, [source(2, "acme", "web", "shop"), source(1, "zeta", "web", "shop")])
        again = claimed(both, [source(2, "acme", "web", "shop"), source(3, "zeta", "web", "shop")])

        assert told(both) == told(again) == {"shop": ("zeta", "web")}

    def test_what_is_let_go_is_free(self) -> None:
        """An app id that its source lists no more goes to the one that was written next."""
        owners = claimed({}, [source(1, "zeta", "web", "shop")])

        left = claimed(owners, [source(2, "acme", "app", "shop"), source(3, "zeta", "web")])

        assert told(left) == {"shop": ("acme", "app")}
        assert claimed(left, []) == {}


class TestKeys:
    def test_an_app_id(self) -> None:
        """A listed app id opens the door, another does not, and the refusal says what to do."""
        keys = Keys(HASH_KEY, ManualClock())
        keys.replace([], claimed({}, [source(1, "acme", "web", "shop")]))
        keys.ready = True

        assert (keys.app("shop").tenant, keys.app("shop").source) == ("acme", "web")
        with pytest.raises(ProblemError, match="or an app id that a source lists") as refused:
            keys.app("other")
        assert refused.value.status == 401

    def test_before_they_are_known(self) -> None:
        """Before the definitions were read an app id gets 503: on 401 trackers drop events."""
        with pytest.raises(ProblemError, match="keys are not read yet") as refused:
            Keys(HASH_KEY, ManualClock()).app("shop")
        assert (refused.value.status, refused.value.retry_after_s) == (503, 1)


@pytest.mark.parametrize("path", ["", ".ts", "meta.", "a..b", "a\n", "x" * 257])
def test_a_bad_time_field_is_refused(path: str) -> None:
    """A path that names no member is refused when it is written."""
    with pytest.raises(ProblemError):
        check("source", "web", {"kind": "source", "name": "web", "time_field": path})


@pytest.mark.parametrize(
    ("app_id", "message"),
    [("", "an app id: printable"), (" shop", "without white space"), ("a\nb", "printable")],
)
def test_a_bad_app_id_is_refused(app_id: str, message: str) -> None:
    """An app id that no tracker can send is refused when it is written."""
    with pytest.raises(ProblemError) as refused:
        check("source", "web", {"kind": "source", "name": "web", "app_ids": [app_id]})

    assert message in json.dumps(refused.value.body())


def test_what_is_held_becomes_the_tenants() -> None:
    """A body that says whose it is counts as its tenant's from then on; all is given back."""
    budget = Budget(100, 60)
    held = Held(budget)
    held.grow(50)

    held.assign("acme")
    with pytest.raises(ProblemError, match="this tenant's requests in flight"):
        held.grow(61)
    other = Held(budget)
    other.grow(50)  # nobody's are none of them any more
    for one in (held, other):
        one.release()

    assert budget.used_bytes == 0
    held.tenant = "acme"
    held.grow(60)
