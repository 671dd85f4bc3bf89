import { describe, expect, it } from "vitest";
import type { Alert, AlertDetail, Happened, Rule, RuleGroup } from "../../src/api/shapes";
import { sickOf, silenceOf, worstOf } from "../../src/lib/standing";
import { aroundOf, asksOf, limitLines, queryAround } from "../../src/pages/alerts/around";
import { alertsIn, firstOf, groupOf, lengthMs, moved, presentOf } from "../../src/pages/alerts/now";
import { timelineOf } from "../../src/pages/alerts/timeline";

const NOW = 1_795_181_520_000;
const MINUTE = 60_000;

const alert = (id: string, given: Partial<Alert> = {}): Alert => ({
  id,
  seq: 1,
  rule: "slow_checkout",
  rule_version: 1,
  labels: { region: "eu" },
  severity: "high",
  state: "firing",
  verdict: "provisional",
  aggregate: "p95",
  value: 617,
  low: 592,
  high: 648,
  limit: 400,
  unit: "ms",
  count: 11_402,
  since_ms: NOW - 10 * MINUTE,
  at_ms: NOW - 10 * MINUTE,
  reason: null,
  runbook: null,
  ack: null,
  silenced_by: [],
  ...given,
});

const group = (given: Partial<RuleGroup>): RuleGroup => ({
  by: { region: "eu" },
  state: "ok",
  health: "ok",
  since_ms: null,
  silent_ms: null,
  value: null,
  low: null,
  high: null,
  ...given,
});

const rule = (name: string, groups: RuleGroup[], given: Partial<Rule> = {}): Rule =>
  ({ name, by: ["region"], mode: "active", state: "ok", health: "ok", groups, ...given }) as Rule;

describe("presentOf", () => {
  it("lists what fires first, and of what ended only the last hour", () => {
    // What is worst is read first; what is over is not news for ever.
    const open = [alert("a"), alert("b", { state: "recovering" })];
    const ended = [
      alert("c", { state: "withdrawn", at_ms: NOW - 59 * MINUTE }),
      alert("d", { state: "resolved", at_ms: NOW - 61 * MINUTE }),
    ];
    const present = presentOf(open, ended, [rule("quiet", [])], NOW);
    expect(present.sections.map((one) => one.state)).toEqual(["firing", "recovering", "changed"]);
    expect(alertsIn(present.sections).map((one) => one.id)).toEqual(["a", "b", "c"]);
    expect(present.ok).toBe(1);
  });

  it("puts what is severe above what is new, and a hundred of a kind into the first few", () => {
    // One rule by path must not push everything else off the screen.
    const open = ["info", "high", "critical", "high"].map((severity, at) =>
      alert(String(at), { severity }),
    );
    const { sections } = presentOf(open, [alert("e", { state: "ended", at_ms: NOW })], [], NOW);
    expect(alertsIn(sections).map((one) => one.id)).toEqual(["2", "1", "3", "0", "e"]);
    expect(alertsIn(firstOf(sections, 2)).map((one) => one.id)).toEqual(["2", "1", "e"]);
  });

  it("lists series that are pending or silent, each once, and none of a stopped rule", () => {
    // A series that fires and has gone silent stands where it fires.
    const rules = [
      rule("slow_checkout", [
        group({ state: "firing", health: "no_data" }),
        group({ by: { region: "us" }, health: "no_data" }),
        group({ by: { region: "ap" }, state: "pending", health: "no_data" }),
      ]),
      rule("off", [group({ health: "no_data" })], { mode: "stopped" }),
    ];
    const { sections } = presentOf([alert("a")], [], rules, NOW);
    expect(sections.map((one) => [one.state, one.rows.length])).toEqual([
      ["firing", 1],
      ["pending", 1],
      ["no_data", 1],
    ]);
    expect(sections[0]?.rows[0]).toMatchObject({ kind: "alert", health: "no_data" });
  });
});

describe("a rule that is not evaluated", () => {
  const why = "its metric is gone; define it again, or delete the rule";

  it("stands below what fires, once, and is not counted as ok", () => {
    // Nobody would be told: that is worse than what is pending.
    const sick = rule("sick", [group({ health: "no_data" })], { health: "error", why });
    const off = rule("off", [], { health: "error", mode: "stopped" });
    const pending = rule("slow", [group({ state: "pending" })], { state: "pending" });
    const { sections, ok } = presentOf([alert("a")], [], [sick, off, pending], NOW);
    expect(sections.map((one) => [one.state, one.rows.length])).toEqual([
      ["firing", 1],
      ["error", 1],
      ["pending", 1],
    ]);
    expect(sections[1]?.rows[0]).toEqual({ kind: "sick", rules: [sick] });
    expect(ok).toBe(0);
    expect(sickOf([sick, off, pending])).toEqual([sick]);
  });

  it("is told once for all that are so for the same reason", () => {
    // Counting stops: a row for each of a hundred rules would say one thing a hundred times.
    const stalled = ["a", "b", "c"].map((name) =>
      rule(name, [], { health: "stale", why: name === "c" ? why : "counting stopped" }),
    );
    const { sections } = presentOf([], [], stalled, NOW);
    const names = sections.flatMap(({ rows }) =>
      rows.map((row) => row.kind === "sick" && row.rules.map((one) => one.name)),
    );
    expect(names).toEqual([["a", "b"], ["c"]]);
  });

  it("makes what it told before old, whatever its series say", () => {
    // Firing is kept, and that it is not known any more stands beside it.
    const rules = [rule("slow_checkout", [group({ health: "no_data" })], { health: "stale" })];
    const { sections } = presentOf([alert("a")], [], rules, NOW);
    expect(sections[0]?.rows[0]).toMatchObject({ kind: "alert", health: "stale" });
  });

  it("tells for how long nothing has been said, of the series of the alert alone", () => {
    // Firing, no data for 3 min: both are shown, and neither is guessed from another series.
    const silent = group({ health: "no_data", silent_ms: NOW - 3 * MINUTE });
    const other = group({ by: { region: "us" }, health: "no_data", silent_ms: NOW - MINUTE });
    const of = rule("slow_checkout", [other, silent]);
    expect(silenceOf(groupOf(alert("a"), of), NOW)).toBe(3 * MINUTE);
    expect(silenceOf(groupOf(alert("b", { labels: { region: "ap" } }), of), NOW)).toBeNull();
    expect(silenceOf(group({}), NOW)).toBeNull();
  });

  it("is the worst of what several rules say of one number", () => {
    // A tile has room for one.
    expect(worstOf(["ok", "no_data", "error", "stale"])).toBe("error");
    expect(worstOf(["ok", "no_data"])).toBe("no_data");
    expect(worstOf([])).toBe("ok");
  });
});

describe("moving", () => {
  it("stops at both ends, and starts at the first", () => {
    // j at the end of a list must not jump to its top.
    expect(moved(["a", "b"], null, 1)).toBe("a");
    expect(moved(["a", "b"], "a", 1)).toBe("b");
    expect(moved(["a", "b"], "b", 1)).toBe("b");
    expect(moved(["a", "b"], "a", -1)).toBe("a");
    expect(moved([], "gone", 1)).toBeNull();
  });
});

describe("lengthMs", () => {
  it("goes on while it fires, and stands once it has ended", () => {
    expect(lengthMs(alert("a"), NOW)).toBe(10 * MINUTE);
    const over = alert("a", { state: "resolved", at_ms: NOW - 4 * MINUTE });
    expect(lengthMs(over, NOW)).toBe(6 * MINUTE);
  });
});

describe("the time around an alert", () => {
  const clock = { nowMs: NOW + 700, resolutionMs: 1_000, keepMs: { 1000: 86_400_000 } };

  it("begins before it and reaches to now, on whole steps", () => {
    // Readings a second apart must ask for the same points.
    const around = aroundOf(alert("a"), 300_000, clock);
    expect(around.fromMs).toBeLessThanOrEqual(NOW - 25 * MINUTE);
    expect(around.toMs).toBeLessThanOrEqual(NOW + 700);
    expect(around.fromMs % around.stepMs).toBe(0);
    expect(around.toMs % around.stepMs).toBe(0);
    expect((around.toMs - around.fromMs) / around.stepMs).toBeLessThanOrEqual(161);
  });

  it("takes longer panes where the short ones are gone", () => {
    // Three days ago only panes of a minute are left; of those a window has to be whole.
    const day = 86_400_000;
    const keepMs = { 10000: day, 60000: 7 * day, 3600000: 90 * day };
    const stepOf = (days: number, windowMs: number) => {
      const at_ms = NOW - days * day;
      const over = alert("a", { state: "resolved", at_ms, since_ms: at_ms - 10 * MINUTE });
      return aroundOf(over, windowMs, { ...clock, resolutionMs: 10_000, keepMs }).stepMs;
    };
    expect(stepOf(0.5, 5 * MINUTE)).toBe(20_000);
    expect(stepOf(3, 5 * MINUTE)).toBe(MINUTE);
    expect(stepOf(30, 60 * MINUTE)).toBe(60 * MINUTE);
    // Windows of five minutes have no panes of hours: nothing that is kept would do.
    expect(stepOf(30, 5 * MINUTE)).toBe(20_000);
  });

  it("ends a while after what has ended, and does not move", () => {
    const over = alert("a", {
      state: "resolved",
      at_ms: NOW - 60 * MINUTE,
      since_ms: NOW - 61 * MINUTE,
    });
    const around = aroundOf(over, 60_000, clock);
    expect(around).toEqual(aroundOf(over, 60_000, { ...clock, nowMs: NOW + 9_000_000 }));
    expect(around.toMs).toBeGreaterThan(over.at_ms);
  });

  it("asks for the alert's own series, as its rule asks", () => {
    // The rule's filter holds, too; a dimension without a value is asked as such.
    const asks = asksOf({
      metric: "lat",
      aggregate: "p95",
      window: { length: "1m30s", step: "10s" },
      by: ["region", "shop"],
      where: [{ dimension: "route", op: "like", value: "/pay%" }],
      recover: 350,
    });
    expect(asks).not.toBeNull();
    if (!asks) return;
    const around = { fromMs: 0, toMs: 60_000, stepMs: 10_000 };
    expect(queryAround(asks, { region: "eu", team: "x" }, around)).toEqual({
      metric: "lat",
      aggregate: "p95",
      window: { kind: "sliding", length: "90s" },
      where: [
        ["route", "like", "/pay%"],
        ["region", "=", "eu"],
        ["shop", "=", null],
      ],
      range: { from: 0, to: 60_000 },
      step: "10s",
    });
    expect(asksOf({ metric: "lat" })).toBeNull();
  });

  it("has a line for each limit, and for a recovery that is elsewhere", () => {
    const lines = limitLines(alert("a"), null, 350);
    expect(lines.map((one) => [one.value, one.text, one.tone])).toEqual([
      [400, "fire above 400 ms", "limit"],
      [350, "recover at 350 ms", "recover"],
    ]);
    const both = limitLines(alert("a", { limit: [5, 400] }), null, [5, 400]);
    expect(both.map((one) => one.text)).toEqual(["fire below 5 ms", "fire above 400 ms"]);
    expect(both[0]?.below).toBe(true);
  });
});

describe("what happened", () => {
  const of = (happened: Happened[], given: Partial<AlertDetail> = {}) =>
    timelineOf({ ...alert("a"), metric: "lat", happened, left_out: 0, ...given });

  it("says a firing provisional until it was confirmed", () => {
    const firing = { kind: "firing", at_ms: 1, value: 617 };
    const [first, second] = of([firing, { kind: "confirmed", at_ms: 2, value: 617 }], {
      verdict: "confirmed",
    });
    expect(first).toMatchObject({ text: "Firing: p95 617 ms > 400 ms", provisional: true });
    expect(second?.text).toBe("Confirmed: every event of the window is in");
    expect(of([firing], { verdict: "confirmed" })[0]?.provisional).toBe(false);
  });

  it("says what an amendment changed, whatever was sent between", () => {
    const entries = of([
      { kind: "firing", at_ms: 1, value: 512 },
      { kind: "delivered", at_ms: 2, value: null, channel: "oncall", status: 200, tries: 1 },
      { kind: "amended", at_ms: 3, value: 519 },
    ]);
    expect(entries[2]?.text).toBe("Amended by late events: p95 512 ms → 519 ms");
  });

  it("says how much is missing behind the first, and compares nothing across it", () => {
    const entries = of(
      [
        { kind: "firing", at_ms: 1, value: 512 },
        { kind: "amended", at_ms: 9, value: 519 },
        { kind: "amended", at_ms: 10, value: 520 },
      ],
      { left_out: 1_234 },
    );
    expect(entries.slice(1).map(({ text }) => text)).toEqual([
      "1,234 more, too many to be shown",
      "Amended by late events: p95 519 ms",
      "Amended by late events: p95 519 ms → 520 ms",
    ]);
    expect(of([{ kind: "firing", at_ms: 1, value: 512 }])).toHaveLength(1);
  });

  it("says between what an estimate lay, each time it was told", () => {
    // A correction may move the ends beyond a limit, or take them off it.
    const entries = of([
      { kind: "firing", at_ms: 1, value: 617, low: 592, high: 648 },
      { kind: "amended", at_ms: 2, value: 519, low: 498, high: 530 },
      { kind: "resolved", at_ms: 3, value: 40, low: 40, high: 40 },
    ]);
    expect(entries.map(({ text }) => text)).toEqual([
      "Firing: p95 617 ms (592 – 648 ms) > 400 ms",
      "Amended by late events: p95 617 ms (592 – 648 ms) → 519 ms (498 – 530 ms)",
      "Resolved: p95 40 ms",
    ]);
  });

  it("says to whom it was sent, what they answered, and how often it was tried", () => {
    const sent = { kind: "delivered", at_ms: 2, channel: "hooks", status: 200, tries: 2 };
    expect(of([sent])[0]).toMatchObject({
      text: "Sent to",
      channel: "hooks",
      answer: "200 after 2 tries",
    });
    const lost = { kind: "given_up", at_ms: 2, channel: "hooks", status: null, tries: 9 };
    expect(of([lost])[0]).toMatchObject({ answer: "no answer after 9 tries", tone: "bad" });
  });

  it("shows a kind that it does not know by its name", () => {
    // A newer server may say more.
    expect(of([{ kind: "still_firing", at_ms: 1 }])[0]?.text).toBe("still firing");
  });
});
