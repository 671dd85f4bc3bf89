import { describe, expect, it } from "vitest";
import { type RuleForm, readRule } from "../../src/lib/rule-text";
import { taken, triedOf } from "../../src/lib/sweep";

const form = (limit: string): RuleForm => {
  const head = "kind: rule\nname: slow\nmetric: latency\naggregate: p95\nwindow: 5m\n";
  const read = readRule(head + limit);
  if (!read) throw new Error(`not a form: ${limit}`);
  return read;
};

describe("a sweep", () => {
  it("is measured against the limit that fires longest, and marks the own", () => {
    // What fires once and never recovers is no better than what fires nine times.
    const sweep = [
      { limit: 350, fired: 1, firing_ms: 90_000 },
      { limit: 400, fired: 9, firing_ms: 9_000 },
      { limit: 450, fired: 0, firing_ms: 0 },
    ];
    expect(triedOf(sweep, form("above: 400")).map((one) => [one.share, one.own])).toEqual([
      [1, false],
      [0.1, true],
      [0, false],
    ]);
    const none = triedOf([{ limit: 400, fired: 0, firing_ms: 0 }], form("above: 400"));
    expect(none[0]?.share).toBe(0);
  });

  it("knows both limits of outside", () => {
    // One of them alone is another rule.
    const sweep = [
      { limit: [5, 400], fired: 1, firing_ms: 1 },
      { limit: [5, 500], fired: 0, firing_ms: 0 },
    ];
    const own = triedOf(sweep, form("outside: [5, 400]")).map((one) => one.own);
    expect(own).toEqual([true, false]);
  });
});

describe("taking a limit", () => {
  it.each([
    ["above: 400\nrecover: 350", 450, { high: "450", backHigh: "400" }],
    ["above: 400", 450, { high: "450", backHigh: "" }],
    ["below: 0.3\nrecover: 0.4", 0.2, { low: "0.2", backLow: "0.3" }],
    [
      "outside: [5, 400]\nrecover: [10, 390]",
      [6, 399],
      { low: "6", high: "399", backLow: "11", backHigh: "389" },
    ],
  ])("of %j moves the recovery along: %j", (text, limit, change) => {
    // A recovery beyond the limit would be refused.
    expect(taken(limit, form(text))).toEqual(change);
  });
});
