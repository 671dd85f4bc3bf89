import { describe, expect, it } from "vitest";
import type { Alert, Rule } from "../../src/api/shapes";
import { DAY_MS, dayOf, knownFrom } from "../../src/pages/alerts/day";
import type { Section } from "../../src/pages/alerts/now";
import {
  ALERT_ORDERS,
  alertsSought,
  holds,
  orderOf,
  rulesSought,
  sectionsSought,
} from "../../src/pages/alerts/sought";

const NOW = 1_795_181_520_000;
const HOUR = 3_600_000;

const alert = (id: string, given: Partial<Alert> = {}): Alert =>
  ({
    ...{ id, rule: "slow_checkout", labels: { region: "eu" }, severity: "high", state: "resolved" },
    ...{ since_ms: NOW - 2 * HOUR, at_ms: NOW - HOUR, value: 1, limit: 0 },
    ...given,
  }) as Alert;

const rule = (name: string, given: Partial<Rule> = {}): Rule =>
  ({
    ...{ name, metric: "latency", aggregate: "p95", by: [], severity: "high", channels: [] },
    ...{ mode: "active", state: "ok", health: "ok", groups: [], last_fired_ms: null },
    ...given,
  }) as Rule;

describe("the last day of a rule", () => {
  it("joins what fired at the same time, and counts each firing", () => {
    // Two series that fire for the same hour do not make two hours.
    const both = [alert("a"), alert("b", { since_ms: NOW - 1.5 * HOUR, at_ms: NOW - 0.5 * HOUR })];
    const day = dayOf(both, Number.NEGATIVE_INFINITY, NOW);
    expect(day.pieces).toEqual([{ kind: "firing", from: 22 / 24, width: 1.5 / 24 }]);
    expect([day.fired, day.firingMs]).toEqual([2, 1.5 * HOUR]);
  });

  it("goes on to now while it fires, begins with the day, and leaves out what was before", () => {
    // A strip that runs over its ends would be drawn outside the table.
    const open = alert("a", { state: "firing", since_ms: NOW - 30 * HOUR, at_ms: NOW - 30 * HOUR });
    expect(dayOf([open], Number.NEGATIVE_INFINITY, NOW).firingMs).toBe(DAY_MS);
    const before = alert("b", { since_ms: NOW - 26 * HOUR, at_ms: NOW - DAY_MS });
    expect(dayOf([before], Number.NEGATIVE_INFINITY, NOW)).toEqual({
      pieces: [],
      fired: 0,
      firingMs: 0,
    });
  });

  it("tells what was withdrawn apart, and does not count it", () => {
    // Late events took its reason away.
    const day = dayOf([alert("a", { state: "withdrawn" })], Number.NEGATIVE_INFINITY, NOW);
    expect(day.pieces.map((one) => one.kind)).toEqual(["withdrawn"]);
    expect([day.fired, day.firingMs]).toEqual([0, 0]);
  });

  it("says from when on it is known, where more has ended than is listed", () => {
    // A calm strip would claim that nothing fired.
    const ended = [alert("a"), alert("b", { at_ms: NOW - 12 * HOUR })];
    expect(knownFrom(ended, 3)).toBe(Number.NEGATIVE_INFINITY);
    expect(knownFrom(ended, 2)).toBe(NOW - 12 * HOUR);
    expect(dayOf([], knownFrom(ended, 2), NOW).pieces).toEqual([
      { kind: "unknown", from: 0, width: 0.5 },
    ]);
  });
});

describe("looking for something", () => {
  it.each([
    ["", true],
    ["  ", true],
    ["EU slow", true],
    ["eu us", false],
  ])("finds %j: each word, in any order", (wanted, found) => {
    expect(holds("slow_checkout region=eu", wanted)).toBe(found);
  });

  it("keeps sections that have something left, with what no alert stands for behind", () => {
    // An empty head above nothing would say that something is there.
    const sections: readonly Section[] = [
      { state: "firing", rows: [{ kind: "alert", alert: alert("a"), rule: null, health: "ok" }] },
      { state: "error", rows: [{ kind: "sick", rules: [rule("sick", { health: "error" })] }] },
    ];
    const states = (text: string) =>
      sectionsSought(sections, text, "newest", NOW).map((one) => one.state);
    expect(states("")).toEqual(["firing", "error"]);
    expect(states("region=eu")).toEqual(["firing"]);
    expect(states("not evaluated")).toEqual(["error"]);
    expect(states("nobody")).toEqual([]);
  });

  it("sorts alerts by what is asked, and by severity where the address says nonsense", () => {
    const all = [
      alert("long", { severity: "low", since_ms: NOW - 9 * HOUR, at_ms: NOW - 3 * HOUR }),
      alert("severe", { severity: "critical", at_ms: NOW - 2 * HOUR }),
      alert("new", { severity: "info", at_ms: NOW }),
    ];
    const ids = (order: (typeof ALERT_ORDERS)[number]) =>
      alertsSought(all, "", order, NOW).map((one) => one.id);
    expect(ids("severity")).toEqual(["severe", "long", "new"]);
    expect(ids("newest")).toEqual(["new", "severe", "long"]);
    expect(ids("longest")).toEqual(["long", "new", "severe"]);
    expect(orderOf(new URLSearchParams("sort=longest"), ALERT_ORDERS)).toBe("longest");
    expect(orderOf(new URLSearchParams("sort=color"), ALERT_ORDERS)).toBe("severity");
  });

  it("sorts rules, and finds a signal by its words", () => {
    const rules = [
      rule("b", { last_fired_ms: 5 }),
      rule("c", { state: "firing" }),
      rule("a", { metric: "weir.memory" }),
    ];
    const rank = (one: Rule) => (one.state === "firing" ? 0 : 1);
    const names = (order: "state" | "name" | "fired", text = "") =>
      rulesSought(rules, text, order, rank).map((one) => one.name);
    expect(names("state")).toEqual(["c", "a", "b"]);
    expect(names("name")).toEqual(["a", "b", "c"]);
    expect(names("fired")).toEqual(["b", "a", "c"]);
    expect(names("name", "memory of redis")).toEqual(["a"]);
  });
});
