import { describe, expect, it } from "vitest";
import { LEAVE_MS, LiveClient, type Wire } from "../../src/live/client";
import { modelOf } from "../../src/live/model";
import { seeded, TestServer } from "./server";

type Sent = Record<string, unknown>;

/** A socket whose other end is the test. */
class TestWire implements Wire {
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: unknown }) => void) | null = null;
  onclose: ((close: { code: number; reason: string }) => void) | null = null;
  readonly sent: Sent[] = [];

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Sent);
  }

  close(): void {}

  says(frame: Sent): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  welcome(key: string | null = "anne", subscriptions?: number): void {
    this.onopen?.();
    const who = { ...(key && { key_id: key }), scopes: [] };
    const limits = { hz: 4, subscriptions };
    this.says({ op: "welcome", epoch: 7, rev: 1, now_ms: 0, ...who, limits });
  }

  ops(): unknown[] {
    return this.sent.map((frame) => frame.op);
  }
}

/** A client with a clock, timers and animation frames that the test moves by hand. */
class Bench {
  readonly wires: TestWire[] = [];
  nowMs = 0;
  private timers: { dueMs: number; act: () => void }[] = [];
  private frames: (() => void)[] = [];
  readonly client = new LiveClient({
    open: () => {
      const wire = new TestWire();
      this.wires.push(wire);
      return wire;
    },
    nowMs: () => this.nowMs,
    chance: () => 0.5,
    onFrame: (draw) => this.frames.push(draw),
    after: (ms, act) => {
      const timer = { dueMs: this.nowMs + ms, act };
      this.timers.push(timer);
      return () => {
        this.timers = this.timers.filter((other) => other !== timer);
      };
    },
    key: () => null,
  });

  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    for (;;) {
      const next = this.timers.filter((t) => t.dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0];
      if (!next) break;
      this.nowMs = next.dueMs;
      this.timers = this.timers.filter((other) => other !== next);
      next.act();
    }
    this.nowMs = endMs;
  }

  /** Lets time pass with the server's pulse in it. */
  passAlive(ms: number): void {
    for (let leftMs = ms; leftMs > 0; leftMs -= 1_000) {
      this.wire.says({ op: "heartbeat", now_ms: this.nowMs, fresh: {} });
      this.pass(Math.min(1_000, leftMs));
    }
  }

  draw(): number {
    const due = this.frames;
    this.frames = [];
    for (const frame of due) frame();
    return due.length;
  }

  get wire(): TestWire {
    return this.wires.at(-1) as TestWire;
  }
}

const QUERY = { metric: "m", aggregate: "count" };

/** Returns a bench with one followed query and its first snapshot drawn. */
function following() {
  const server = new TestServer(seeded(5));
  server.step();
  const bench = new Bench();
  bench.client.start();
  bench.wire.welcome();
  const followed = bench.client.query(QUERY);
  bench.wire.says({ op: "subscribed", id: 1, key: "q" });
  const whole = () => {
    const answer = server.snapshot();
    return {
      op: "snapshot",
      key: "q",
      epoch: answer.epoch,
      rev: answer.rev,
      part: 1,
      parts: 1,
      answer,
    };
  };
  bench.wire.says(whole());
  bench.draw();
  return { server, bench, followed, whole };
}

describe("LiveClient", () => {
  it("ends equal to a fresh snapshot after the server was away", () => {
    // A tab that sleeps through a restart resumes from the revision it holds.
    const { server, bench, followed } = following();
    const heldRev = server.rev;
    bench.wire.onclose?.({ code: 1006, reason: "" });
    for (let turn = 0; turn < 5; turn += 1) server.step();
    bench.pass(1_000);
    bench.wire.welcome();
    const asked = bench.wire.sent.find((frame) => frame.op === "subscribe");
    expect(asked?.from).toEqual({ epoch: 7, rev: heldRev });
    bench.wire.says({ op: "subscribed", id: 1, key: "q" });
    bench.wire.says({ op: "delta", key: "q", ...server.since(heldRev) });
    bench.draw();
    expect(followed.state.value.model).toEqual(modelOf(server.snapshot()));
  });

  it("forgets with the credential what was told by it", () => {
    // Whoever signs in next, within seconds and with the same question, is of another tenant.
    const { bench, followed } = following();
    followed.release();
    bench.client.restart();
    bench.wire.welcome();
    const again = bench.client.query(QUERY);
    expect(again.state.value.model).toBeNull();
    const asked = bench.wire.sent.find((frame) => frame.op === "subscribe");
    expect(asked).toBeDefined();
    expect(asked).not.toHaveProperty("from");
  });

  it("forgets what it holds when somebody else is welcomed", () => {
    // Another tab has signed in as another tenant while this one's socket was away.
    const { server, bench, followed } = following();
    const welcomed: (string | null)[] = [];
    bench.client.welcomed.subscribe((key) => welcomed.push(key));
    bench.wire.onclose?.({ code: 1006, reason: "" });
    server.step();
    bench.pass(1_000);
    bench.wire.welcome("bob");
    expect(followed.state.value.model).toBeNull();
    const asked = bench.wire.sent.find((frame) => frame.op === "subscribe");
    expect(asked).toBeDefined();
    expect(asked).not.toHaveProperty("from");
    expect(welcomed).toEqual(["anne", "bob"]);
  });

  it("goes on with a server of an older release, which names nobody", () => {
    // A page may be newer than the replica that its socket comes to.
    const { bench } = following();
    bench.wire.onclose?.({ code: 1012, reason: "" });
    bench.pass(1_000);
    bench.wire.welcome(null);
    expect(bench.client.welcomed.value).toBe("anne");
    expect(bench.wire.sent.find((frame) => frame.op === "subscribe")).toHaveProperty("from");
  });

  it("asks again from what it holds when it notices a hole", () => {
    // A delta that starts too late is not applied, and nothing is lost.
    const { server, bench, followed } = following();
    const heldRev = server.rev;
    server.step();
    bench.wire.says({ op: "delta", key: "q", ...server.since(heldRev), prev: heldRev + 1 });
    expect(bench.wire.ops().slice(-2)).toEqual(["unsubscribe", "subscribe"]);
    expect(bench.wire.sent.at(-1)?.from).toEqual({ epoch: 7, rev: heldRev });
    bench.wire.says({ op: "subscribed", id: 2, key: "q" });
    bench.wire.says({ op: "delta", key: "q", ...server.since(heldRev) });
    bench.draw();
    expect(followed.state.value.model).toEqual(modelOf(server.snapshot()));
  });

  it("draws once per animation frame however many deltas arrive", () => {
    // Only the newest state is ever drawn.
    const { server, bench, followed } = following();
    let drawn = 0;
    followed.state.subscribe(() => {
      drawn += 1;
    });
    for (let turn = 0; turn < 10; turn += 1) {
      const prev = server.rev;
      server.step();
      bench.wire.says({ op: "delta", key: "q", ...server.since(prev) });
    }
    expect(bench.draw()).toBe(1);
    expect(drawn).toBe(2);
    expect(followed.state.value.model?.rev).toBe(server.rev);
  });

  it("shows a snapshot in parts only when it is complete", () => {
    // Half a board is worse than an old one.
    const { server, bench, followed } = following();
    const before = followed.state.value.model;
    server.step();
    const answer = server.snapshot();
    const [first, ...rest] = answer.series;
    const part = (part: number, series: unknown) => ({
      op: "snapshot",
      key: "q",
      epoch: 7,
      rev: answer.rev,
      part,
      parts: 2,
      answer: { ...answer, series },
    });
    bench.wire.says(part(1, [first]));
    bench.draw();
    expect(followed.state.value.model).toBe(before);
    bench.wire.says(part(2, rest));
    bench.draw();
    expect(followed.state.value.model).toEqual(modelOf(answer));
  });

  it("stays still while paused and then shows the newest, without a replay", () => {
    // Pausing asks the server for silence, too.
    const { server, bench, followed, whole } = following();
    const before = followed.state.value.model;
    bench.client.setPaused(true);
    expect(bench.wire.sent.at(-1)).toEqual({ op: "pace", hz: 0 });
    server.step();
    bench.wire.says(whole());
    bench.draw();
    expect(followed.state.value.model).toBe(before);
    bench.client.setPaused(false);
    bench.draw();
    expect(followed.state.value.model?.rev).toBe(server.rev);
  });

  it("shares one subscription among equal queries", () => {
    // Two tiles of the same number cost one.
    const { bench, followed } = following();
    expect(bench.client.query(QUERY).state).toBe(followed.state);
    expect(bench.wire.ops().filter((op) => op === "subscribe")).toHaveLength(1);
  });

  it("leaves a query five seconds after nobody shows it, unless somebody returns", () => {
    // Scrolling past and back costs nothing.
    const { bench, followed } = following();
    followed.release();
    bench.passAlive(LEAVE_MS - 1_000);
    const again = bench.client.query(QUERY);
    bench.passAlive(LEAVE_MS);
    expect(bench.wire.ops()).not.toContain("unsubscribe");
    again.release();
    bench.passAlive(LEAVE_MS);
    expect(bench.wire.ops()).toContain("unsubscribe");
  });

  it("slows down to one update in ten seconds while the tab is hidden", () => {
    // Nobody looks, so nothing needs to be told.
    const { bench } = following();
    bench.client.setHidden(true);
    expect(bench.wire.sent.at(-1)).toEqual({ op: "pace", hz: 0.1 });
    bench.client.setHidden(false);
    expect(bench.wire.sent.at(-1)).toEqual({ op: "pace", hz: 4 });
  });

  it("keeps the answer on screen when the server refuses", () => {
    // A refusal is told beside what is known, and other queries go on.
    const { bench, followed } = following();
    const problem = { status: 422, code: "query_invalid", message: "no such field" };
    bench.wire.says({ op: "error", id: 1, problem });
    bench.draw();
    expect(followed.state.value.problem).toEqual(problem);
    expect(followed.state.value.model).not.toBeNull();
  });

  it("knows up to where what it holds is counted, and not up to where the server is", () => {
    // A held chart must not take a window for whole that it holds half of.
    const { server, bench, followed } = following();
    const heldMs = followed.state.value.model?.throughMs ?? 0;
    const beat = (rev: number, throughMs: number) =>
      bench.wire.says({
        op: "heartbeat",
        now_ms: 0,
        epoch: 7,
        rev,
        fresh: { processed_through_ms: throughMs },
      });
    const step = () => {
      const prev = server.rev;
      server.step();
      return { op: "delta", key: "q", ...server.since(prev), final_to_ms: heldMs };
    };
    const told = step();
    beat(server.rev + 1, heldMs + 90_000);
    bench.wire.says(told);
    bench.draw();
    expect(followed.state.value.model?.throughMs).toBe(heldMs);
    beat(server.rev, heldMs + 60_000);
    bench.wire.says(step());
    bench.draw();
    expect(followed.state.value.model?.throughMs).toBe(heldMs + 60_000);
  });

  it("asks again for what was refused, more and more seldom, and from the beginning", () => {
    // What was wrong with a query, or with its metric, may be mended.
    const { bench, followed, whole } = following();
    const problem = { status: 422, code: "query_invalid", message: "no such aggregate" };
    const asked = () => bench.wire.ops().filter((op) => op === "subscribe").length;
    const refuse = () => bench.wire.says({ op: "error", id: 1, problem });
    refuse();
    // By chance half of what is added to each wait: 12.5, 25, 50 and 75 s.
    for (const waitMs of [12_500, 25_000, 50_000, 75_000, 75_000]) {
      const before = asked();
      bench.passAlive(waitMs - 1_000);
      expect(asked()).toBe(before);
      bench.passAlive(1_000);
      expect(asked()).toBe(before + 1);
      expect(bench.wire.sent.at(-1)).not.toHaveProperty("from");
      refuse();
    }
    bench.passAlive(75_000);
    bench.wire.says({ op: "subscribed", id: 1, key: "q" });
    bench.wire.says(whole());
    bench.draw();
    expect(followed.state.value.problem).toBeNull();
    const before = asked();
    bench.passAlive(120_000);
    expect(asked()).toBe(before);
    refuse();
    bench.passAlive(12_500);
    expect(asked()).toBe(before + 1);
  });

  it("asks again for frames that were refused, as for a query", () => {
    // A tail, or what fires: else the page would stand still until it is loaded anew.
    const { bench } = following();
    const ops: string[] = [];
    const leave = bench.client.frames({ to: "alerts" }, (frame) => ops.push(frame.op));
    const problem = { status: 503, code: "not_yet", message: "come later" };
    const asked = () => bench.wire.sent.filter((frame) => frame.to === "alerts").length;
    for (const waitMs of [12_500, 25_000]) {
      const before = asked();
      bench.wire.says({ op: "error", id: 2, problem });
      bench.passAlive(waitMs - 1_000);
      expect(asked()).toBe(before);
      bench.passAlive(1_000);
      expect(asked()).toBe(before + 1);
    }
    bench.wire.says({ op: "subscribed", id: 2, key: "a" });
    expect(ops).toEqual(["error", "error", "subscribed"]);
    // What is told ends the row of refusals: the next one is asked again as soon as the first.
    bench.wire.says({ op: "alerts", key: "a", items: [] });
    bench.wire.says({ op: "error", id: 2, problem });
    const after = asked();
    bench.passAlive(12_500);
    expect(asked()).toBe(after + 1);
    leave();
    const before = asked();
    bench.passAlive(120_000);
    expect(asked()).toBe(before);
  });

  it("asks again for what it may not have once another is welcomed, and not before", () => {
    // Of whom a connection is, it was told once: the same question has the same answer.
    const { bench } = following();
    const problem = { status: 403, code: "scope_missing", message: "the key needs a scope" };
    bench.wire.says({ op: "error", id: 1, problem });
    bench.client.query({ metric: "other", aggregate: "count" }).release();
    bench.passAlive(200_000);
    const asked = () => bench.wire.sent.filter((one) => one.op === "subscribe" && one.id === 1);
    expect(asked()).toHaveLength(1);
    bench.wire.onclose?.({ code: 1006, reason: "" });
    bench.pass(1_000);
    bench.wire.welcome();
    expect(asked()).toHaveLength(1);
  });

  it("does not ask again for what was refused while nobody looks", () => {
    // Each time may cost the server as much as an answer.
    const { bench } = following();
    const problem = { status: 422, code: "query_too_large", message: "got 35,000 bytes of rows" };
    const asked = () => bench.wire.ops().filter((op) => op === "subscribe").length;
    bench.client.setHidden(true);
    bench.wire.says({ op: "error", id: 1, problem });
    bench.passAlive(300_000);
    expect(asked()).toBe(1);
    bench.client.setHidden(false);
    expect(asked()).toBe(2);
  });

  it("asks no more for who has left as it was told of a refusal", () => {
    // It would hold a place that nobody can free.
    const { bench } = following();
    const leave = bench.client.frames({ to: "alerts" }, (frame) => frame.op === "error" && leave());
    const problem = { status: 503, code: "not_yet", message: "come later" };
    bench.wire.says({ op: "error", id: 2, problem });
    bench.passAlive(120_000);
    expect(bench.wire.sent.filter((frame) => frame.to === "alerts")).toHaveLength(1);
  });

  it("does not ask again for what nobody shows any more", () => {
    // A board that was left is not asked for.
    const { bench, followed } = following();
    const problem = { status: 422, code: "query_invalid", message: "no such aggregate" };
    bench.wire.says({ op: "error", id: 1, problem });
    followed.release();
    bench.passAlive(60_000);
    expect(bench.wire.ops().filter((op) => op === "subscribe")).toHaveLength(1);
  });

  it("tells that metrics may be others: refused and answered again, of another version, in another epoch", () => {
    // What a page has read of them, such as units and how long panes are, it reads anew.
    const { bench, whole } = following();
    expect(bench.client.changes.value).toBe(0);
    const problem = { status: 422, code: "query_invalid", message: "step must be whole panes" };
    bench.wire.says({ op: "error", id: 1, problem });
    expect(bench.client.changes.value).toBe(1);
    // The same again is no news, whatever it counts by now: pages would read for ever.
    bench.wire.says({ op: "error", id: 1, problem: { ...problem, message: "got 7 bytes" } });
    expect(bench.client.changes.value).toBe(1);
    const { answer, ...frame } = whole();
    bench.wire.says({ op: "subscribed", id: 1, key: "q" });
    bench.wire.says({ ...frame, answer });
    // It is there, or is answered again: a list of metrics that was read before lacks it.
    expect(bench.client.changes.value).toBe(2);
    const edited = { ...answer, metric: { ...answer.metric, version: 2 } };
    bench.wire.says({ ...frame, answer: edited });
    expect(bench.client.changes.value).toBe(3);
    bench.wire.says({ ...frame, epoch: 8, answer: { ...edited, epoch: 8 } });
    expect(bench.client.changes.value).toBe(4);
  });

  describe("with room for two subscriptions", () => {
    const begun = () => {
      const bench = new Bench();
      bench.client.start();
      bench.wire.welcome("anne", 2);
      const ask = (metric: string) => bench.client.query({ metric, aggregate: "count" });
      const told = () =>
        bench.wire.sent.flatMap((frame) => {
          const { op, id } = frame as { op: string; id: number };
          return op === "subscribe" ? [id] : op === "unsubscribe" ? [-id] : [];
        });
      return { bench, ask, told };
    };

    it("lets who is one too many wait until another leaves", () => {
      // The server ends a socket that asks for more, and nobody could tell why.
      const { bench, ask, told } = begun();
      const [first] = [ask("a"), ask("b"), ask("c"), ask("d")];
      expect(told()).toEqual([1, 2]);
      first?.release();
      bench.passAlive(LEAVE_MS);
      expect(told()).toEqual([1, 2, -1, 3]);
    });

    it("asks for who comes back to a place that is free by then", () => {
      // A tile that scrolled off and on again would stay empty.
      const { bench, ask, told } = begun();
      const [first, , third] = [ask("a"), ask("b"), ask("c")];
      first?.release();
      bench.passAlive(1_000);
      third?.release();
      bench.passAlive(LEAVE_MS - 1_000);
      expect(told()).toEqual([1, 2, -1]);
      ask("c");
      expect(told()).toEqual([1, 2, -1, 3]);
    });

    it("makes room at once of what nobody shows any more", () => {
      const { ask, told } = begun();
      for (const followed of [ask("a"), ask("b")]) followed.release();
      ask("c");
      ask("d");
      ask("e");
      expect(told()).toEqual([1, 2, -1, 3, -2, 4]);
    });

    it("gives the place of what is refused to another, and asks again when there is one", () => {
      const { bench, ask, told } = begun();
      const [, second] = [ask("a"), ask("b"), ask("c")];
      const problem = { status: 422, code: "query_invalid", message: "no" };
      bench.wire.says({ op: "error", id: 1, problem });
      expect(told()).toEqual([1, 2, 3]);
      bench.passAlive(20_000);
      expect(told()).toEqual([1, 2, 3]);
      second?.release();
      bench.passAlive(LEAVE_MS);
      expect(told()).toEqual([1, 2, 3, -2, 1]);
    });

    it("asks anew for no more than that after a reconnect, and first for what is shown", () => {
      const { bench, ask, told } = begun();
      const [first] = [ask("a"), ask("b"), ask("c")];
      first?.release();
      bench.wire.onclose?.({ code: 1006, reason: "" });
      bench.pass(1_000);
      bench.wire.welcome("anne", 2);
      expect(told()).toEqual([2, 3]);
    });
  });

  it("tells who follows frames that they begin anew", () => {
    // What was to be told of the ones before is told to nobody.
    const { bench } = following();
    const ops: string[] = [];
    bench.client.frames({ to: "tail", filter: {} }, (frame) => ops.push(frame.op));
    bench.wire.says({ op: "subscribed", id: 2, key: "t" });
    bench.wire.onclose?.({ code: 1006, reason: "" });
    bench.pass(1_000);
    bench.wire.welcome();
    bench.wire.says({ op: "subscribed", id: 2, key: "t" });
    expect(ops).toEqual(["subscribed", "subscribed"]);
  });
});
