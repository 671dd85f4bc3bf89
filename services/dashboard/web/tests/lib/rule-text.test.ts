import { describe, expect, it } from "vitest";
import { newRule, onSide, readRule, ruleFieldOf, sorted, writeRule } from "../../src/lib/rule-text";

const TEXT = `# who is paged for this: the checkout team
kind: rule
name: slow_checkout
metric: checkout_latency
aggregate: p95
window: {length: 5m, step: 30s}
by: [region]  # one alert for each
where: "route like '/pay%'"
above: 400
for: 2m30s
recover: 350
min_events: 20
certain: true
no_data: {then: keep, tell_after: 10m, end_after: 24h}
severity: high
message: |
  p95 {value} {unit}
  above: all else
labels: {team: checkout}
route:
  channels:
    - oncall
  repeat: 4h
runbook: https://wiki.example.com/slow
`;

const form = (text = TEXT) => {
  const found = readRule(text);
  if (!found) throw new Error("must be read");
  return found;
};

describe("readRule", () => {
  it("reads what the form shows", () => {
    // Each member, however it is written.
    expect(form()).toEqual({
      name: "slow_checkout",
      metric: "checkout_latency",
      aggregate: "p95",
      window: "5m",
      by: ["region"],
      where: "route like '/pay%'",
      side: "above",
      low: "",
      high: "400",
      hold: "2m30s",
      backLow: "",
      backHigh: "350",
      recoverFor: "",
      minEvents: "20",
      silence: "keep",
      tellAfter: "10m",
      severity: "high",
      channels: ["oncall"],
      mode: "active",
    });
  });

  it("reads the other sides", () => {
    // Below has its limit underneath, outside has two.
    const { side, low, high, backLow } = form("metric: a\nbelow: 5\nrecover: 7\n");
    expect([side, low, high, backLow]).toEqual(["below", "5", "", "7"]);
    const out = form("outside: [5, 400]\nrecover: [10, 350]\n");
    expect([out.low, out.high, out.backLow, out.backHigh]).toEqual(["5", "400", "10", "350"]);
  });

  it("reads what the server made of a text", () => {
    // There, what is not said is null.
    const { side, low, backHigh } = form(
      '{"above": null, "below": 5.0, "outside": null, "recover": null}',
    );
    expect([side, low, backHigh]).toEqual(["below", "5", ""]);
  });

  it("leaves a filter that is a list to the text", () => {
    // It has more shapes than one field.
    expect(form("where: [[route, like, /pay%]]\n").where).toBeNull();
  });
});

describe("writeRule", () => {
  it("gives the same text for the same form", () => {
    // Comments, order and members that are not shown.
    expect(writeRule(TEXT, form())).toBe(TEXT);
  });

  it("changes the line of what changed and nothing else", () => {
    // The limit is what is changed most.
    expect(writeRule(TEXT, { ...form(), high: "420" })).toBe(
      TEXT.replace("above: 400", "above: 420"),
    );
    expect(writeRule(TEXT, { ...form(), window: "10m" })).toBe(
      TEXT.replace("length: 5m", "length: 10m"),
    );
  });

  it("keeps what stands beside a changed member in its map", () => {
    // The form shows neither repeat nor end_after.
    const text = writeRule(TEXT, { ...form(), channels: ["oncall", "hooks"], tellAfter: "5m" });
    expect(text).toContain("route: {channels: [oncall, hooks], repeat: 4h}\n");
    expect(text).toContain("no_data: {then: keep, tell_after: 5m, end_after: 24h}\n");
  });

  it("reads back what it wrote, whatever was changed", () => {
    // The law of a round trip.
    const changes = [
      { high: "" },
      { high: "4x", backHigh: "" },
      { by: [], where: "", minEvents: "" },
      { by: ["region", "data.route"], severity: "critical", mode: "shadow" },
      { channels: [], silence: "fire", recoverFor: "5m", hold: "" },
      { where: "route = 'a: \"b\" # c'" },
      onSide(form(), "below"),
      { ...onSide(form(), "outside"), backLow: "1", backHigh: "9" },
    ];
    for (const change of changes) {
      const next = { ...form(), ...change };
      const text = writeRule(TEXT, next);
      expect(readRule(text)).toEqual(next);
      expect(text).toContain("  above: all else\nlabels: {team: checkout}\n");
    }
  });

  it("goes there and back in JSON", () => {
    // Rules that a program wrote.
    const json = JSON.stringify({ kind: "rule", above: 400, labels: { a: "b" }, window: "5m" });
    const text = writeRule(json, { ...form(json), high: "410" });
    expect(JSON.parse(text)).toMatchObject({ above: 410, labels: { a: "b" }, window: "5m" });
  });
});

describe("newRule", () => {
  it("lacks its limit alone", () => {
    // It is proposed once the last day is known.
    const given = { name: "a_high", metric: "a", aggregate: "p95", window: "5m", by: ["x"] };
    expect(newRule(given)).toBe(
      'kind: rule\nname: a_high\nmetric: a\naggregate: p95\nwindow: 5m\nby: [x]\nabove: ""\nseverity: high\n',
    );
  });
});

describe("ruleFieldOf", () => {
  const place = (pointer: string, required = "") => ({ pointer, required, got: "", mend: "" });

  it.each([
    ["/above", "limit"],
    ["/outside/1", "limit"],
    ["/window/length", "window"],
    ["/window/step", null],
    ["/for", "hold"],
    ["/no_data/then", "silence"],
    ["/route/channels/0", "channels"],
    ["/labels/x", null],
  ])("leads from %s to %s", (pointer, field) => {
    // Where it is mended.
    expect(ruleFieldOf(place(pointer))).toBe(field);
  });

  it("finds the field of what the whole says", () => {
    // A limit and its recovery are checked together.
    expect(ruleFieldOf(place("", "a recover at most the limit, 4"))).toBe("recover");
    const { faults, rest } = sorted([place("/above"), place("/runbook"), place("/above", "b")]);
    expect([...faults.keys()]).toEqual(["limit"]);
    expect(rest).toEqual([place("/runbook")]);
  });
});
