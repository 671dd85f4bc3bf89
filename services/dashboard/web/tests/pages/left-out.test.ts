import { describe, expect, it } from "vitest";
import type { QuarantineSummary } from "../../src/api/shapes";
import { lateWords } from "../../src/messages.late.en";
import { leftOutOf } from "../../src/pages/metric/left-out";

const part = (version: number, partition: number | null, copies: number, left_out: number) => ({
  version: 40 + version,
  metric: "latency",
  metric_version: version,
  partition,
  copies,
  left_out,
  message: null,
});

const summary = (change: Partial<QuarantineSummary>): QuarantineSummary => ({
  items: [part(3, 1, 1000, 8345), part(2, 0, 1000, 99), part(3, 0, 1000, 4000), part(3, 2, 7, 0)],
  copies: 3007,
  left_out: 12_444,
  whole: true,
  ...change,
});

describe("leftOutOf", () => {
  it("adds up what one version has no copy of, and says where", () => {
    // Another version's events are told with that version.
    expect(leftOutOf(summary({}), 3)).toEqual({
      missing: 12_345,
      copies: 2_007,
      parts: [
        { partition: 1, missing: 8345 },
        { partition: 0, missing: 4000 },
      ],
      isPartial: false,
    });
    expect(leftOutOf(summary({ whole: false }), 2)).toMatchObject({ missing: 99, isPartial: true });
  });

  it("says nothing where everything has a copy", () => {
    // Nor before it is known.
    expect(leftOutOf(null, 3)).toBeNull();
    expect(leftOutOf(summary({ items: [part(3, 2, 7, 0)] }), 3)).toBeNull();
    expect(leftOutOf(summary({}), 1)).toBeNull();
  });
});

describe("the words of what has no copy", () => {
  it("say how many, of which version, who counts them and where they are", () => {
    const words = lateWords.ledger;
    expect(words.leftOut("12,345", "2,007", 3)).toBe(
      "Up to 12,345 more events whose value version 3 could not use are not kept as copies; 2,007 are. Each minute of this ledger counts all of its own.",
    );
    expect([words.leftOutIn(0, "4,000"), words.leftOutIn(null, "5")]).toEqual([
      "partition 0: 4,000",
      "elsewhere 5",
    ]);
  });
});
