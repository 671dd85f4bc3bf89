"""A rule of the browser's own metric, as its pages show it."""

from __future__ import annotations

RULE = """
kind: rule
name: many_hits
metric: browser_hits
aggregate: count
window: {length: 3s, step: 1s}
above: 0
"""
# Each address of the page of alerts, and what is there once it has its content.
ALERT_PAGES = {
    "/alerts": "[data-testid=alert-row]",
    "/alerts?tab=rules": "[data-testid=rule-row]",
    "/alerts?tab=history": "[data-testid=alert-row]",
    "/alerts?tab=silences": "[data-testid=new-silence]",
    "/alerts?tab=channels": "[data-testid=new-channel]",
}
