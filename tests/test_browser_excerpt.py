"""Where an expression is wrong is shown in a real browser: a caret below the place."""

from __future__ import annotations

from typing import Any

import pytest
from browser import accessibility_faults, opened, signed_in
from playwright.sync_api import Locator, expect
from weir_local.testing import TestStack

NAME = "browser_excerpt"
METRIC = f"""
kind: metric
name: {NAME}
events: {{type: browser.excerpt}}
value: data.ms
by: [data.region]
aggregates: [count, max]
"""
RULE = f"/rules/new?metric={NAME}&agg=max&win=10s&by=region"
LONG = "data.region in ('north', 'south', 'east', 'west') and data.ms > 100 and status = 200"
# Left edges of the character of the first line at the caret's column, and of the caret, in pixels.
PLACES = """element => {
    const [text] = element.childNodes, [line, below] = text.data.split("\\n");
    const left = at => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect();
    };
    const [above, caret] = [left(below.length - 1), left(text.data.length - 1)];
    return {
        above: line.slice(below.length - 1), over: above.left, under: caret.left,
        top: above.top, below: caret.top, height: element.clientHeight,
        right: caret.right, wide: innerWidth, page: document.documentElement.scrollWidth,
    };
}"""

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def shop(stack: TestStack) -> TestStack:
    """Return the shared stack with a metric."""
    stack.define("metric", NAME, METRIC)
    return stack


def assert_points_at(excerpt: Locator, what: str) -> None:
    """Assert that the caret is in the line below a word, both of them seen, and nothing wraps."""
    expect(excerpt).to_be_visible(timeout=20_000)
    found: dict[str, Any] = excerpt.evaluate(PLACES)
    assert found["above"].startswith(what)
    assert abs(found["over"] - found["under"]) < 1
    assert found["top"] < found["below"] < found["top"] + found["height"]
    assert found["height"] < 3 * (found["below"] - found["top"])
    assert found["right"] <= found["wide"]
    assert found["page"] <= found["wide"]


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("phone", "dark")])
def test_the_editor_points_at_the_place(shop: TestStack, size: str, theme: str) -> None:
    """Below the check's words, and of a long line what is around the place."""
    with signed_in(shop, size, theme) as (page, complaints):
        opened(page, f"/d/metric/{NAME}")
        editor = page.locator("textarea.editor")
        excerpt = page.get_by_test_id("excerpt")
        expect(editor).to_have_value(METRIC)
        expect(excerpt).to_have_count(0)
        editor.fill(f'{METRIC}where: "data.ms > 100 and status = 200"\n')
        expect(excerpt).to_have_text("data.ms > 100 and status = 200\n" + " " * 18 + "^")
        assert_points_at(excerpt, "status = 200")
        editor.fill(f'{METRIC}where: "{LONG}"\n')
        expect(excerpt).to_contain_text("…")
        assert_points_at(excerpt, "status = 200")
        assert accessibility_faults(page) == []
        editor.fill(METRIC)
        expect(excerpt).to_have_count(0)
        assert complaints.texts == []


@pytest.mark.parametrize(("size", "theme"), [("desk", "dark"), ("phone", "light")])
def test_the_form_of_a_rule_points_at_the_place(shop: TestStack, size: str, theme: str) -> None:
    """Below the words at its filter."""
    with signed_in(shop, size, theme) as (page, complaints):
        opened(page, RULE)
        page.get_by_test_id("rule-where").fill("region = 'eu' and ms > 100")
        fault = page.locator("#rule-where-fault")
        expect(fault).to_contain_text("must be a comparison of a declared dimension")
        assert_points_at(fault.get_by_test_id("excerpt"), "ms > 100")
        assert accessibility_faults(page) == []
        page.get_by_test_id("rule-where").fill("region = 'eu'")
        expect(fault).to_have_count(0)
        assert complaints.texts == []


def test_the_form_of_a_metric_points_at_the_place(shop: TestStack) -> None:
    """Below the words at the field, and below the text."""
    with signed_in(shop) as (page, complaints):
        opened(page, "/metrics/new")
        page.get_by_test_id("metric-type").fill("browser.excerpt")
        page.get_by_test_id("metric-where").fill("data.ms > > 100")
        fault = page.locator("#metric-where-fault")
        assert_points_at(fault.get_by_test_id("excerpt"), "> 100")
        page.get_by_role("radio", name="YAML").click()
        below = page.locator("#metric-yaml-faults").get_by_test_id("excerpt")
        assert_points_at(below, "> 100")
        assert complaints.texts == []
