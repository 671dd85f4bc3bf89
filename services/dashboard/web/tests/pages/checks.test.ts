import { describe, expect, it } from "vitest";
import type { StatusPart } from "../../src/api/shapes";
import { checksOf } from "../../src/pages/live/checks";

const part = (name: string, change: Partial<StatusPart> = {}): StatusPart => ({
  name,
  instance: `${name}-1`,
  running: true,
  ready: true,
  status: "ok",
  at_ms: 0,
  since_ms: 0,
  busy: null,
  in: null,
  lag_ms: 400,
  version: "0",
  rss_bytes: null,
  detail: {},
  ...change,
});
const ok = (parts: StatusPart[] | null, culprit: string | null) =>
  checksOf(parts, culprit).map((check) => check.ok);

describe("checksOf", () => {
  it("is content when every part is heard of", () => {
    // Ingest, Kafka, Spark, Redis: the way of an event.
    const checks = checksOf([part("ingest"), part("panes")], null);
    expect(checks.map((check) => check.ok)).toEqual([true, true, true, true]);
    expect(checks[2]?.text).toBe("Spark counts, 0.4 s behind");
  });

  it("names what is missing, and blames nothing else for it", () => {
    // A part that is gone, or that the server names, is told.
    expect(ok([part("panes")], null)).toEqual([false, true, true, true]);
    expect(ok([part("ingest"), part("panes", { running: false })], "panes")).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect(ok([part("ingest"), part("panes")], "kafka")).toEqual([true, false, true, true]);
    expect(ok([part("ingest"), part("panes")], "redis")).toEqual([true, true, true, false]);
  });

  it("claims nothing before it has heard anything", () => {
    // Not known yet is neither good nor bad.
    expect(ok(null, null)).toEqual([null, null, null, null]);
  });
});
