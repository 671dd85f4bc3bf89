import { describe, expect, it } from "vitest";
import {
  type Happening,
  hasLost,
  IDLE,
  isDisconnected,
  type Link,
  linkAfter,
  MAX_RETRY_MS,
  waitAfter,
} from "../../src/live/link";

const fresh = {
  status: "live" as const,
  processed_through_ms: 1,
  received_ms: 1,
  evaluated_ms: 1,
  since_ms: null,
  part: null,
  progress: null,
};
const welcome: Happening = {
  type: "frame",
  frame: {
    op: "welcome",
    epoch: 1,
    rev: 1,
    now_ms: 50_000,
    heartbeat_ms: 2_000,
    key_id: "anne",
    scopes: ["read"],
    limits: { subscriptions: 64, hz: 4 },
  },
};
const heartbeat: Happening = {
  type: "frame",
  frame: { op: "heartbeat", now_ms: 52_000, epoch: 1, rev: 1, fresh },
};

/** Returns a link to which all this happened, second by second. */
function linkThat(...happenings: Happening[]): Link {
  return happenings.reduce(
    (link, what, at) => linkAfter(link, what, { nowMs: at * 1_000, chance: 0.5 }).link,
    IDLE,
  );
}

describe("linkAfter", () => {
  it("says hello when the socket opens, and subscribes when it is welcomed", () => {
    // Nothing is asked before the server knows who asks.
    const connecting = linkThat({ type: "start" });
    const at = { nowMs: 1_000, chance: 0 };
    expect(linkAfter(connecting, { type: "opened" }, at).effects).toEqual(["hello"]);
    expect(linkAfter(connecting, welcome, at).effects).toEqual(["resubscribe"]);
  });

  it("takes ages from the server's clock", () => {
    // A wrong clock of this machine must not make numbers look old.
    expect(linkThat({ type: "start" }, welcome).offsetMs).toBe(49_000);
  });

  it("closes after six seconds of silence, and not before", () => {
    // The heartbeat comes every two seconds, so six are no accident.
    const open = linkThat({ type: "start" }, welcome);
    const tick = (nowMs: number) => linkAfter(open, { type: "tick" }, { nowMs, chance: 0.5 });
    expect(tick(6_999).effects).toEqual([]);
    expect(tick(7_000).effects).toEqual(["close"]);
    expect(tick(7_000).link.phase).toBe("waiting");
  });

  it("counts the silence on screen from the last frame", () => {
    // Disconnected is shown at six seconds even if the socket was closed at once.
    const lost = linkThat({ type: "start" }, welcome, { type: "closed", code: 1006, reason: "" });
    expect(isDisconnected(lost, 6_999)).toBe(false);
    expect(isDisconnected(lost, 7_000)).toBe(true);
  });

  it("doubles its patience up to thirty seconds, spread by chance", () => {
    // Full jitter: a thousand screens do not come back in the same instant.
    const waits = [0, 1, 2, 6, 20].map((attempt) => waitAfter(1006, { ...IDLE, attempt }, 0.999));
    expect(waits.map(Math.round)).toEqual([500, 999, 1_998, 29_970, 29_970]);
    expect(waitAfter(1006, { ...IDLE, attempt: 9 }, 0)).toBe(0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(MAX_RETRY_MS);
  });

  it("starts small again only once a heartbeat came", () => {
    // A server that accepts and drops at once must not be hammered.
    const dropped: Happening = { type: "closed", code: 1006, reason: "" };
    expect(linkThat({ type: "start" }, dropped, { type: "wake" }, welcome).attempt).toBe(1);
    expect(linkThat({ type: "start" }, dropped, { type: "wake" }, welcome, heartbeat).attempt).toBe(
      0,
    );
  });

  it.each([1012, 1013])("waits as long as a server asks that closes with %i", (code) => {
    // A good-bye says when to return: not all at once.
    const bye: Happening = {
      type: "frame",
      frame: { op: "goodbye", code, reason: "restart", after_ms: 1_830 },
    };
    const closed: Happening = { type: "closed", code, reason: "" };
    expect(linkThat({ type: "start" }, welcome, bye, closed).retryAtMs).toBe(3_000 + 1_830);
  });

  it.each([
    [4401, "denied"],
    [4400, "broken"],
    [4413, "broken"],
    [1009, "broken"],
    [4408, "waiting"],
    [4429, "waiting"],
  ])("after close %i it is %s", (code, phase) => {
    // Credentials need a person, mistakes need a fix, everything else another try.
    expect(linkThat({ type: "start" }, welcome, { type: "closed", code, reason: "" }).phase).toBe(
      phase,
    );
  });

  it("comes back at half its pace after it was too slow", () => {
    // 4408: the screen could not take what it asked for.
    const slow = linkThat({ type: "start" }, welcome, { type: "closed", code: 4408, reason: "" });
    expect(slow.maxHz).toBe(2);
  });

  it("waits at least ten seconds after it said too much", () => {
    // 4429: less would only flood again.
    const flooded = linkThat({ type: "start" }, welcome, {
      type: "closed",
      code: 4429,
      reason: "",
    });
    expect((flooded.retryAtMs ?? 0) - 2_000).toBeGreaterThanOrEqual(10_000);
  });

  it("connects at once when somebody looks again", () => {
    // Waiting is for the server's sake; a person in front of the screen goes first.
    const lost = linkThat({ type: "start" }, { type: "closed", code: 1006, reason: "" });
    expect(linkAfter(lost, { type: "wake" }, { nowMs: 2_000, chance: 1 }).effects).toEqual([
      "connect",
    ]);
  });

  it("has lost a server only that it once heard", () => {
    // Lists are asked for beside the connection: not while the server restarts, which would
    // fill the console with refusals, but also where a connection never came about.
    const drop: Happening = { type: "closed", code: 1006, reason: "" };
    const retry: Happening = { type: "wake" };
    expect(hasLost(linkThat({ type: "start" }, drop))).toBe(false);
    expect(hasLost(linkThat({ type: "start" }, welcome))).toBe(false);
    expect(hasLost(linkThat({ type: "start" }, welcome, drop))).toBe(true);
    expect(hasLost(linkThat({ type: "start" }, welcome, drop, retry))).toBe(true);
    expect(hasLost(linkThat({ type: "start" }, welcome, drop, retry, welcome))).toBe(false);
  });

  it.each([
    [4401, "denied"],
    [4400, "broken"],
  ])("has not lost a server that closed with %i: it is there, and answers lists", (code, phase) => {
    const link = linkThat({ type: "start" }, welcome, { type: "closed", code, reason: "" });
    expect([link.phase, hasLost(link)]).toEqual([phase, false]);
  });
});
