import { describe, expect, it } from "vitest";
import type { Alert } from "../../src/api/shapes";
import { crossing, labelPairs, limitSentence, seriesText, sideOf } from "../../src/lib/limit-words";
import { titleOf } from "../../src/lib/rule-title";
import { amountOf } from "../../src/lib/signals";

const alert = (given: Partial<Alert>) =>
  ({ aggregate: "p95", unit: "ms", value: 617, limit: 400, ...given }) as Alert;

describe("crossing", () => {
  it.each([
    [{}, "p95 617 ms > 400 ms"],
    [{ value: 3, limit: 5 }, "p95 3 ms < 5 ms"],
    [{ value: 3, limit: [5, 400] }, "p95 3 ms outside 5 to 400 ms"],
    [{ value: 0, limit: -1, unit: "" }, "p95 0 > -1"],
    [{ low: 617, high: 617 }, "p95 617 ms > 400 ms"],
    [{ low: 592, high: 648 }, "p95 617 ms (592 – 648 ms) > 400 ms"],
    [{ value: null }, "no data"],
  ])("says of %j what crossed what", (given, text) => {
    // As in the message that was sent, and of an estimate its ends.
    expect(crossing(alert(given as Partial<Alert>))).toBe(text);
  });

  it("does not guess a side from silence", () => {
    // There is no value that could tell.
    expect(sideOf({ value: null, limit: 400 })).toBeNull();
  });
});

describe("a signal of Weir itself", () => {
  const lag = { metric: "weir.lag", aggregate: "last", unit: "s" } as const;

  it.each([
    [lag, "delay of numbers 75 s > 30 s", "delay of numbers above 30 s"],
    [
      { ...lag, metric: "weir.memory", unit: "%" },
      "memory of Redis 75 % > 30 %",
      "memory of Redis above 30 %",
    ],
    [{ ...lag, metric: "weir.unheard", unit: "" }, "weir.unheard 75 > 30", "weir.unheard above 30"],
  ])("is named in words, and its seconds are a length: %j", (of, crossed, sentence) => {
    // Its aggregate is always the same, and says nothing; one of a later release has its name.
    expect(crossing(alert({ ...of, value: 75, limit: 30 }), of.metric)).toBe(crossed);
    expect(limitSentence({ ...of, side: "above", limit: 30 })).toBe(sentence);
  });

  it("says an hour and a half as people do", () => {
    // 5,400 s would have to be worked out.
    expect(amountOf(5_400, lag)).toBe("90 min");
    expect(amountOf(5_400, { metric: "latency", unit: "s" })).toBe("5,400 s");
    expect(amountOf(null, lag)).toBe("–");
  });
});

describe("words of a rule", () => {
  it("are its name and its limit as people say them", () => {
    expect(titleOf("slow_checkout_p99")).toBe("Slow checkout p99");
    const rule = {
      metric: "latency",
      aggregate: "p95",
      side: "above",
      limit: 400,
      unit: "ms",
    } as const;
    expect(limitSentence(rule)).toBe("p95 above 400 ms");
    expect(limitSentence({ ...rule, side: "outside", limit: [5, 400] })).toBe(
      "p95 outside 5 to 400 ms",
    );
  });
});

describe("labels", () => {
  const labels = { team: "checkout", region: "eu", __proto__x: null };

  it("stand with the rule's dimensions first, and say what is not there", () => {
    // `region = none` is a series like any other.
    expect(labelPairs(labels, ["region"])).toEqual([
      ["region", "eu"],
      ["team", "checkout"],
      ["__proto__x", "none"],
    ]);
  });

  it("name a series by its dimensions alone, or by all where the rule is gone", () => {
    expect(seriesText(labels, ["region"])).toBe("region=eu");
    expect(seriesText(labels, [])).toBe("");
    expect(seriesText({ team: "a", region: "eu" }, null)).toBe("team=a · region=eu");
  });
});
