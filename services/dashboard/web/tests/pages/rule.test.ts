import { describe, expect, it } from "vitest";
import type { Metric } from "../../src/api/shapes";
import { readRule } from "../../src/lib/rule-text";
import { beginningOf } from "../../src/pages/rule/places";
import { toldOf, waitOf } from "../../src/pages/rule/told";

const metric: Metric = {
  name: "latency",
  active: true,
  aggregates: ["count", "avg", "p95"],
  by: ["region", "route"],
  capped: false,
  resolution_ms: 10_000,
  series: 3,
  unit: "ms",
  version: 1,
};
const place = (pointer: string, required = "a number") => ({
  pointer,
  required,
  got: "x",
  mend: "",
});
const checked = (errors: readonly ReturnType<typeof place>[], old = false) => ({
  ok: false,
  kind: "rule",
  name: null,
  parsed: null,
  estimate: null,
  code: "definition_invalid",
  message: "wrong",
  errors: [...errors],
  old,
});
const form = (text: string) => readRule(text);

describe("beginningOf", () => {
  const start = (address: string) =>
    readRule(beginningOf(new URLSearchParams(address), [{ ...metric, name: "a" }, metric]));

  it("is what the address asks for", () => {
    // A metric's page leads here with what it shows.
    const found = start("metric=latency&agg=avg&win=1m&by=route");
    expect(found).toMatchObject({
      name: "latency_high",
      metric: "latency",
      aggregate: "avg",
      window: "1m",
      by: ["route"],
      high: "",
    });
  });

  it("takes what is usual for what is not there", () => {
    // An address can be old, or typed.
    expect(start("metric=gone&agg=p50&win=x&by=nothing")).toMatchObject({
      metric: "a",
      aggregate: "p95",
      window: "5m",
      by: [],
    });
  });
});

describe("toldOf", () => {
  const whole = form("name: a\nabove: x\n");

  it("tells an error at its field and nowhere else", () => {
    // Each once.
    const told = toldOf(null, checked([place("/above")]), whole);
    expect([...told.faults.keys()]).toEqual(["limit"]);
    expect(told.alert).toBeNull();
  });

  it("tells in one alert what has no field", () => {
    // With all its places, and without those that have one.
    const errors = [place("/above"), place("/labels/a"), place("/runbook")];
    const { alert } = toldOf(null, checked(errors), whole);
    expect(alert?.message).toBe('/labels/a must be a number, got "x"');
    expect(alert?.errors).toEqual([place("/runbook")]);
  });

  it("leaves what has a place to the text where that is shown", () => {
    // The list stands below it.
    const told = toldOf(null, checked([place("/labels/a")]), null);
    expect([told.errors.length, told.alert]).toEqual([1, null]);
  });

  it("keeps still about what is to be filled in, until it is saved", () => {
    // Nobody is blamed for what they have not come to.
    const empty = form('name: ""\nabove: ""\n');
    const errors = [place("/name"), place("/above")];
    expect(toldOf(null, checked(errors), empty).faults.size).toBe(0);
    const problem = { status: 422, code: "definition_invalid", message: "wrong", errors };
    expect([...toldOf(problem, null, empty).faults.keys()]).toEqual(["name", "limit"]);
  });

  it("tells a refusal without places as it is", () => {
    // Such as a metric that is gone.
    const problem = { status: 404, code: "metric_unknown", message: "there is no such metric" };
    expect(toldOf(problem, null, whole).alert?.message).toBe("there is no such metric");
  });
});

describe("waitOf", () => {
  it("says why there is no answer, once", () => {
    // What stands at a field need not be said again.
    expect(waitOf(false, null)).toBeNull();
    expect(waitOf(true, null)).toContain("limit");
    expect(waitOf(false, { status: 422, code: "", message: "x" })).not.toBe("x");
    expect(waitOf(false, { status: 503, code: "", message: "the store is away" })).toBe(
      "the store is away",
    );
  });
});
