"""What comes between a page and a slow answer, in a real browser: nothing that is typed is lost."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from browser import Followed, Held, accessibility_faults, opened, refuse, signed_in
from playwright.sync_api import Page, Route, expect
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: saved_waits
events: {type: saved.wait}
value: data.ms
aggregates: [count, max]
resolution: 1s
"""
RULE = "kind: rule\nname: {name}\nmetric: saved_waits\naggregate: max\nwindow: 10s\nabove: 400\n"
NEW = "/rules/new?metric=saved_waits&agg=max&win=10s"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def waits(stack: TestStack) -> TestStack:
    """Return the shared stack with a metric."""
    stack.define("metric", "saved_waits", METRIC)
    return stack


def named(what: str) -> str:
    """Return a name of this run's own."""
    return f"{what}_{uuid.uuid4().hex[:6]}"


def writes(page: Page) -> list[str]:
    """Return a list of the methods and addresses by which the page writes from now on."""
    found: list[str] = []
    page.on(
        "request",
        lambda one: found.append(one.url) if one.method == "PUT" else None,
    )
    return found


def choose_type(page: Page, kind: str) -> None:
    """Have the fields of a type shown, if the page offers several: as buttons, or as a list."""
    several = page.get_by_label("Types")
    if several.count() == 0:
        return
    if several.evaluate("one => one.tagName") == "SELECT":
        several.select_option(kind)
    else:
        several.get_by_role("radio", name=kind).click()


def press(page: Page, path: str) -> None:
    """Press what makes a draft of a field."""
    page.locator(f"[data-testid=field-row][data-field='{path}'] button").click()


def test_a_definition_is_saved_once_and_typed_on(waits: TestStack) -> None:
    """A second click sends nothing; what is typed before the answer stays, as a change."""
    name = named("typed_on")
    waits.define("rule", name, RULE.format(name=name))
    with signed_in(waits) as (page, complaints):
        held = Held(page, "PUT", f"**/definitions/rule/{name}")
        sent = writes(page)
        opened(page, f"/d/rule/{name}")
        text, save = page.locator("textarea.editor"), page.get_by_role("button", name="Save as")
        expect(text).to_have_value(RULE.format(name=name))
        first = f"{RULE.format(name=name)}# first\n"
        text.fill(first)
        save.dblclick()
        held.wait()
        text.fill(f"{first}# second\n")
        held.let_go()

        expect(page.get_by_text("version 2", exact=True)).to_be_visible()
        expect(text).to_have_value(f"{first}# second\n")
        assert len(sent) == 1
        assert waits.api("GET", f"/definitions/rule/{name}").body["text"] == first
        save.click()
        expect(page.get_by_text("Saved as version 3")).to_be_visible()
        assert waits.api("GET", f"/definitions/rule/{name}").body["text"].endswith("# second\n")
        assert complaints.texts == []


def test_a_definition_that_others_overtake_keeps_what_was_typed(waits: TestStack) -> None:
    """A conflict leads to the other text; one's own stays until one has chosen theirs."""
    name = named("overtaken")
    first, path = RULE.format(name=name), f"/definitions/rule/{name}"
    waits.define("rule", name, first)
    with signed_in(waits) as (page, _complaints):
        opened(page, f"/d/rule/{name}")
        text, save = page.locator("textarea.editor"), page.get_by_role("button", name="Save as")
        conflict, dialog = page.get_by_test_id("conflict"), page.get_by_role("dialog")
        for version, choice in ((1, "Go on with mine"), (3, "Take theirs")):
            mine, theirs = f"{first}# mine {version}\n", f"{first}# theirs {version}\n"
            text.fill(mine)
            overtaken = waits.api("PUT", path, {"text": theirs}, {"If-Match": f'"{version}"'})
            assert overtaken.status == 200
            save.click()
            expect(conflict).to_be_visible()
            expect(page.get_by_role("button", name="Try again")).to_have_count(0)
            expect(text).to_have_value(mine)
            page.get_by_role("button", name="Show theirs").click()
            expect(dialog).to_contain_text(f"# theirs {version}")
            assert accessibility_faults(page) == []
            dialog.get_by_role("button", name=choice).click()
            expect(conflict).to_have_count(0)
            expect(page.get_by_text(f"version {version + 1}", exact=True)).to_be_visible()
            expect(text).to_have_value(theirs if choice == "Take theirs" else mine)
            if version == 1:
                save.click()
                expect(page.get_by_text("Saved as version 3")).to_be_visible()
                assert waits.api("GET", path).body["text"] == mine

        text.fill(f"{first}# after all\n")
        assert waits.api("DELETE", path, None, {"If-Match": '"4"'}).status in (200, 204)
        save.click()
        expect(page.get_by_text("Somebody has deleted this rule")).to_be_visible()
        page.get_by_role("button", name="Store mine as a new rule").click()
        expect(text).to_have_value(f"{first}# after all\n")
        save.click()
        expect(page.get_by_text("Saved as version")).to_be_visible()
        assert waits.api("GET", path).body["text"].endswith("# after all\n")


def test_a_rule_is_saved_once_and_typed_on(waits: TestStack) -> None:
    """As a definition: what is typed before the answer stays, and is no version yet."""
    name = named("typed_on")
    waits.define("rule", name, RULE.format(name=name))
    with signed_in(waits) as (page, complaints):
        held = Held(page, "PUT", f"**/definitions/rule/{name}")
        sent = writes(page)
        opened(page, f"/rules/{name}")
        limit, save = page.get_by_test_id("rule-limit-high"), page.get_by_test_id("rule-save")
        limit.fill("410")
        save.dblclick()
        held.wait()
        limit.fill("420")
        held.let_go()

        expect(save).to_have_text("Save version 3")
        expect(limit).to_have_value("420")
        assert len(sent) == 1
        save.click()
        expect(page.get_by_text("Saved as version 3.")).to_be_visible()
        assert "above: 420" in waits.api("GET", f"/definitions/rule/{name}").body["text"]
        assert complaints.texts == []


def test_a_new_rule_goes_to_its_own_page_once_nothing_is_typed(waits: TestStack) -> None:
    """Its page asks nothing meanwhile, and the next saving is of the rule that was made."""
    name = named("typed_new")
    with signed_in(waits) as (page, complaints):
        held = Held(page, "PUT", f"**/definitions/rule/{name}")
        opened(page, NEW)
        limit, save = page.get_by_test_id("rule-limit-high"), page.get_by_test_id("rule-save")
        page.get_by_test_id("rule-name").fill(name)
        limit.fill("410")
        save.click()
        held.wait()
        limit.fill("420")
        held.let_go()

        expect(save).to_have_text("Save version 2")
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        assert "/rules/new" in page.url
        assert page.get_by_role("dialog").count() == 0
        save.click()
        page.wait_for_url(f"**/rules/{name}", timeout=20_000)
        expect(page.get_by_text("Saved as version 2.")).to_be_visible()
        assert "above: 420" in waits.api("GET", f"/definitions/rule/{name}").body["text"]
        assert complaints.texts == []


def test_a_new_metric_is_no_loss_only_once_it_is_stored(stack: TestStack) -> None:
    """Left while it is being stored, it asks: it may be refused, and then its form is needed."""
    name = named("made")
    with signed_in(stack) as (page, _complaints):
        held = Held(page, "PUT", f"**/definitions/metric/{name}")
        opened(page, "/metrics/new")
        field, create = page.get_by_test_id("metric-name"), page.get_by_test_id("metric-create")
        field.fill(name)
        page.get_by_test_id("metric-type").fill("saved.made")
        create.click()
        route = held.wait()
        page.get_by_role("link", name="Ledger").first.click()
        page.get_by_role("button", name="Stay").click()
        refuse(route, 503, "store_unavailable", "no store")
        expect(page.get_by_test_id("problem")).to_contain_text("no store")
        expect(field).to_have_value(name)
        create.click()
        page.wait_for_url(f"**/m/{name}", timeout=20_000)
        assert page.get_by_role("dialog").count() == 0


def test_who_types_on_while_a_metric_is_stored_is_asked(stack: TestStack) -> None:
    """What was stored goes to its page, unless something else stands in the form by then."""
    name = named("typed_on")
    with signed_in(stack) as (page, complaints):
        held = Held(page, "PUT", f"**/definitions/metric/{name}")
        opened(page, "/metrics/new")
        page.get_by_test_id("metric-name").fill(name)
        page.get_by_test_id("metric-type").fill("saved.made")
        page.get_by_test_id("metric-create").click()
        held.wait()
        page.get_by_test_id("metric-unit").fill("EUR")
        held.let_go()
        page.get_by_role("button", name="Stay").click()
        expect(page.get_by_test_id("metric-unit")).to_have_value("EUR")
        assert stack.api("GET", f"/definitions/metric/{name}").status == 200
        assert complaints.texts == []


def test_a_text_is_dropped_for_the_form_only_knowingly(stack: TestStack) -> None:
    """What the form cannot hold is asked about; where nothing was typed, nothing is asked."""
    with signed_in(stack) as (page, complaints):
        opened(page, "/metrics/new?type=saved.text")
        text, dialog = page.get_by_test_id("metric-yaml"), page.get_by_role("dialog")
        as_form = page.get_by_test_id("metric-form").get_by_role("radio", name="Form")
        as_text = page.get_by_test_id("metric-form").get_by_role("radio", name="YAML")
        as_text.click()
        as_form.click()
        expect(page.get_by_test_id("metric-type")).to_have_value("saved.text")
        as_text.click()
        typed = text.input_value() + "keep: {10s: 2h}\n"
        text.fill(typed)
        as_form.click()
        expect(dialog).to_contain_text("Go on without what you typed?")
        assert accessibility_faults(page) == []
        page.get_by_role("button", name="Keep it").click()
        expect(text).to_have_value(typed)
        as_form.click()
        page.get_by_test_id("question-yes").click()
        expect(page.get_by_test_id("metric-type")).to_have_value("saved.text")
        as_text.click()
        expect(text).not_to_have_value(typed)
        assert complaints.texts == []


def test_a_field_that_is_pressed_drops_nothing_unasked(stack: TestStack) -> None:
    """A field beside the tail makes another draft: what was typed stays, or is asked about."""
    kind = f"saved.{uuid.uuid4().hex[:6]}"
    event: dict[str, Any] = {"specversion": "1.0", "source": "/saved", "type": kind, "id": kind}
    event["data"] = {"total": 5, "shop": "a"}
    with signed_in(stack) as (page, complaints):
        followed = Followed(page)
        opened(page, "/live")
        followed.await_tail(stack)
        stack.post([event])
        page.get_by_test_id("tail-row").filter(has_text=kind).wait_for()
        choose_type(page, kind)
        where, text = page.get_by_test_id("metric-where"), page.get_by_test_id("metric-yaml")
        press(page, "data.total")
        expect(page.get_by_test_id("metric-value")).to_have_value("data.total")
        where.fill("data.total > 1")
        press(page, "data.shop")
        expect(page.get_by_test_id("metric-by")).to_have_value("data.shop")
        expect(where).to_have_value("data.total > 1")
        page.get_by_role("link", name="Ledger").first.click()
        page.get_by_role("button", name="Stay").click()

        page.get_by_test_id("metric-form").get_by_role("radio", name="YAML").click()
        typed = text.input_value() + "keep: {10s: 2h}\n"
        text.fill(typed)
        press(page, "data.total")
        page.get_by_role("button", name="Keep it").click()
        expect(text).to_have_value(typed)
        press(page, "data.total")
        page.get_by_test_id("question-yes").click()
        expect(page.get_by_test_id("metric-value")).to_have_value("data.total")
        expect(where).to_have_value("data.total > 1")
        assert complaints.texts == []


def test_a_refusal_of_what_was_typed_over_is_not_told(waits: TestStack) -> None:
    """It is of another text: what stands there now has not been refused."""
    name = named("typed_over")
    waits.define("rule", name, RULE.format(name=name))
    with signed_in(waits) as (page, _):
        held = Held(page, "PUT", f"**/definitions/rule/{name}")
        opened(page, f"/rules/{name}")
        recover, save = page.get_by_test_id("rule-recover-high"), page.get_by_test_id("rule-save")
        recover.fill("500")
        save.click()
        held.wait()
        recover.fill("300")
        held.let_go()
        expect(save).to_have_text("Save version 2")
        expect(page.get_by_test_id("problem")).to_have_count(0)
        expect(page.get_by_test_id("field-fault")).to_have_count(0)


def test_a_late_answer_closes_no_other_dialog(stack: TestStack) -> None:
    """Who closes the dialog of a silence, and opens another, keeps what they write there."""
    why = named("closed")
    with signed_in(stack) as (page, complaints):
        held = Held(page, "POST", "**/api/v1/silences")
        opened(page, "/alerts?tab=silences")
        form = page.get_by_test_id("silence-form")
        page.get_by_test_id("new-silence").click()
        form.get_by_label("Labels").fill(f"shop = '{why}'")
        page.get_by_test_id("silence-store").click()
        held.wait()
        page.keyboard.press("Escape")
        expect(form).to_have_count(0)
        page.get_by_test_id("new-silence").click()
        form.get_by_label("Why").fill("the next one")
        held.let_go()

        expect(page.get_by_test_id("silence-row").filter(has_text=why)).to_have_count(1)
        assert form.get_by_label("Why").input_value(timeout=1_000) == "the next one"
        assert complaints.texts == []


def test_a_late_answer_closes_no_other_dialog_of_a_channel(stack: TestStack) -> None:
    """As with silences."""
    name = named("late")
    with signed_in(stack) as (page, complaints):
        held = Held(page, "PUT", f"**/definitions/channel/{name}")
        opened(page, "/alerts?tab=channels")
        form = page.get_by_test_id("channel-form")
        page.get_by_test_id("new-channel").click()
        form.get_by_label("Name").fill(name)
        form.get_by_label("Address").fill("http://127.0.0.1:9/")
        form.get_by_label("Secret").fill("not_there")
        page.get_by_test_id("channel-store").click()
        held.wait()
        page.keyboard.press("Escape")
        expect(form).to_have_count(0)
        page.get_by_test_id("new-channel").click()
        form.get_by_label("Name").fill("the_next")
        held.let_go()

        expect(page.locator(f"[data-channel={name}]")).to_have_count(1)
        assert form.get_by_label("Name").input_value(timeout=1_000) == "the_next"
        assert complaints.texts == []


def test_a_list_is_shown_that_is_told_slowly(stack: TestStack) -> None:
    """An answer that takes longer than the time to the next reading, and one that never comes."""
    with signed_in(stack) as (page, complaints):
        asked: list[Route] = []

        def answer_late(route: Route) -> None:
            asked.append(route)
            if len(asked) > 1:
                page.wait_for_timeout(3_000)
                route.continue_()

        page.route("**/api/v1/silences", answer_late)
        opened(page, "/alerts?tab=silences")
        # The first is given up after half a minute.
        expect(page.get_by_test_id("problem")).to_be_visible(timeout=45_000)
        expect(page.get_by_test_id("new-silence")).to_be_visible()
        assert complaints.texts == []
