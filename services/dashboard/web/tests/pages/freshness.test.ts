import { describe, expect, it } from "vitest";
import { freshnessOf, type Seen } from "../../src/components/freshness";
import { IDLE } from "../../src/live/link";
import type { Fresh } from "../../src/live/wire";

const NOW = Date.UTC(2026, 10, 20, 14, 32, 6);
const fresh: Fresh = {
  status: "live",
  processed_through_ms: NOW - 400,
  received_ms: NOW - 200,
  evaluated_ms: NOW,
  since_ms: null,
  part: null,
  progress: null,
};
const seen = (change: Partial<Fresh>, more: Partial<Seen> = {}): Seen => ({
  link: { ...IDLE, phase: "open", fresh: { ...fresh, ...change } },
  lost: false,
  localMs: NOW,
  serverMs: NOW,
  zone: "utc",
  pausedMs: null,
  ...more,
});
const said = (what: Seen) => {
  const { head, rest } = freshnessOf(what);
  return `${head} ${rest}`;
};

describe("freshnessOf", () => {
  it("tells how long ago the newest event was counted", () => {
    // Always in sight.
    expect(said(seen({}))).toBe("Live counted 0.4 s ago");
  });

  it("names the part that stands still, and since when", () => {
    // Within ten seconds of any part stalling.
    const what = seen({ status: "stale", since_ms: NOW - 44_000, part: "panes" });
    expect(said(what)).toBe("Stale since 14:31:22");
    expect(freshnessOf(what).hint).toBe("Counting stopped. Events are kept.");
  });

  it("tells how far it is behind while it catches up", () => {
    // Late, but moving.
    const what = seen({ status: "behind", processed_through_ms: NOW - 40_000 });
    expect(said(what)).toBe("Behind 40 s catching up");
  });

  it("tells how much of a rebuild is done", () => {
    // Numbers come back one by one.
    expect(said(seen({ status: "rebuilding", progress: 0.62 }))).toBe("Rebuilding 62 %");
  });

  it("tells that this screen has lost the server, before anything that it last heard", () => {
    // What was live six seconds ago may not be now.
    const link = { ...seen({}).link, phase: "waiting" as const, retryAtMs: NOW + 3_200 };
    expect(said(seen({}, { link, lost: true }))).toBe("Disconnected retry in 4 s");
  });

  it("tells when it was paused", () => {
    // A still screen must say that it is still.
    expect(said(seen({}, { pausedMs: NOW - 26_000 }))).toBe("Paused at 14:31:40");
  });

  it("asks to sign in when the credential no longer counts", () => {
    // The place is kept; the numbers are not shown as live.
    const link = { ...seen({}).link, phase: "denied" as const };
    expect(said(seen({}, { link }))).toBe("Signed out sign in again");
  });
});
