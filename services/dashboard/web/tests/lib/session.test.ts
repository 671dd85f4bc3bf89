import { type Signal, signal } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Session } from "../../src/api/shapes";

const ANNE: Session = { signed_in: true, tenant: "acme", scopes: ["read"], key_id: "anne" };
const BOB: Session = { ...ANNE, tenant: "other", key_id: "bob" };
const NOBODY: Session = { signed_in: false, tenant: null, scopes: [], key_id: null };

/** A server whose answers the test gives by hand, in the order that it likes. */
class Server {
  readonly asked: { method: string; answer: (status: number, text: string) => void }[] = [];

  readonly fetch = (_path: string, request: RequestInit): Promise<Response> =>
    new Promise((done) => {
      this.asked.push({
        method: request.method ?? "GET",
        answer: (status, text) => done(new Response(text, { status })),
      });
    });

  say(at: number, status: number, body: unknown): Promise<void> {
    this.asked[at]?.answer(status, JSON.stringify(body));
    return settled();
  }

  /** Answers with a success that ends before it is whole. */
  breakOff(at: number): Promise<void> {
    this.asked[at]?.answer(200, '{"signed_in": tr');
    return settled();
  }

  get methods(): string[] {
    return this.asked.map((one) => one.method);
  }
}

/** The live link, as far as a session sees it. */
class TestLive {
  readonly welcomed: Signal<string | null> = signal(null);
  readonly link = signal({ phase: "open" });
  restarts = 0;

  restart(): void {
    this.restarts += 1;
    this.welcomed.value = null;
    this.link.value = { phase: "connecting" };
  }
}

/** A channel between the tabs of a browser: each of them hears the others. */
class TestChannel {
  static all: TestChannel[] = [];
  onmessage: (() => void) | null = null;

  constructor(readonly name: string) {
    TestChannel.all.push(this);
  }

  postMessage(): void {
    for (const one of TestChannel.all) {
      if (one !== this && one.name === this.name) one.onmessage?.();
    }
  }
}

/** What is told when a tab is hidden or looked at. */
class TestDocument extends EventTarget {
  hidden = false;
}

const settled = () => new Promise<void>((done) => setTimeout(done));

let server: Server;
let live: TestLive;
let page: TestDocument;
let tab: typeof import("../../src/lib/session");

// Each test has a tab of its own, in which nothing is known yet.
beforeEach(async () => {
  server = new Server();
  live = new TestLive();
  page = new TestDocument();
  TestChannel.all = [];
  vi.stubGlobal("fetch", server.fetch);
  vi.stubGlobal("document", page);
  vi.stubGlobal("BroadcastChannel", TestChannel);
  vi.resetModules();
  vi.doMock("../../src/live/live", () => ({ currentKey: () => null, live }));
  tab = await import("../../src/lib/session");
});

afterEach(() => vi.unstubAllGlobals());

/** Starts the tab; the server says who is signed in, and the link welcomes them. */
async function started(who: Session): Promise<void> {
  tab.startSession();
  await server.say(0, 200, who);
  live.welcomed.value = who.key_id ?? null;
}

/** Signs somebody in. */
async function entered(who: Session): Promise<void> {
  const entering = tab.signIn({ key: "k" });
  await server.say(server.asked.length - 1, 200, who);
  await entering;
}

describe("who is signed in", () => {
  it.each([true, false])(
    "is not told by an answer of before (asked before: %s)",
    async (before) => {
      // The server said "nobody" while the sign-in was under way.
      const asks = before
        ? [tab.whoAmI(), tab.signIn({ key: "k" })]
        : [tab.signIn({ key: "k" }), tab.whoAmI()];
      const [get, post] = before ? [0, 1] : [1, 0];
      await server.say(post, 200, ANNE);
      await server.say(get, 200, NOBODY);
      await Promise.all(asks);
      expect(tab.session.value).toEqual(ANNE);
    },
  );

  it("is asked again where a sign-in is refused", async () => {
    // A link that was used, opened by somebody whose session goes on.
    const first = tab.whoAmI();
    const refused = expect(tab.signIn({ once: "used" })).rejects.toThrow("used");
    await server.say(0, 200, ANNE);
    await server.say(1, 401, { status: 401, code: "unauthorized", message: "it was used" });
    await Promise.all([first, refused]);
    expect(server.methods).toEqual(["GET", "POST", "GET"]);
    // What it was before, nobody knows any more.
    expect(tab.session.value).toEqual(NOBODY);
    await server.say(2, 200, ANNE);
    expect(tab.session.value).toEqual(ANNE);
  });

  it("is not told while somebody signs in", async () => {
    // Whatever it says is of the session that ends: lists would ask with a cookie that is none.
    const first = tab.whoAmI();
    const entering = tab.signIn({ key: "k" });
    await server.say(0, 200, BOB);
    await first;
    expect(tab.session.value).toEqual(NOBODY);
    await server.say(1, 200, ANNE);
    await entering;
    expect(tab.session.value).toEqual(ANNE);
  });

  it("is asked, and followed live, where the answer to a sign-in breaks off", async () => {
    // The cookie is there by then, and the live link of before is not theirs.
    const broken = expect(tab.signIn({ once: "new" })).rejects.toThrow();
    await server.breakOff(0);
    await broken;
    expect(live.restarts).toBe(1);
    await server.say(1, 200, ANNE);
    expect(tab.session.value).toEqual(ANNE);
  });

  it("stays so until a sign-out is answered", async () => {
    // A page that went at once would be gone for nothing where it is refused.
    await started(ANNE);
    const before = tab.visit.value;
    const leaving = tab.signOut();
    expect(tab.session.value).toEqual(ANNE);
    expect(tab.visit.value).toBe(before);
    await server.say(1, 200, NOBODY);
    await leaving;
    expect(tab.session.value).toEqual(NOBODY);
    expect(tab.visit.value).toBe(before + 1);
    expect(live.restarts).toBe(1);
  });

  it.each([true, false])(
    "is nobody after a sign-out, whatever an answer of before says (asked before: %s)",
    async (before) => {
      // The session still stood when the server said so.
      const asks = before ? [tab.whoAmI(), tab.signOut()] : [tab.signOut(), tab.whoAmI()];
      const [get, end] = before ? [0, 1] : [1, 0];
      await server.say(end, 200, NOBODY);
      await server.say(get, 200, ANNE);
      await Promise.all(asks);
      expect(tab.session.value).toEqual(NOBODY);
    },
  );

  it("stays so where a sign-out is refused, with all that is on the screen", async () => {
    // What was typed is on a page of this visit, and what is drawn came by this link.
    await started(ANNE);
    const before = tab.visit.value;
    const leaving = expect(tab.signOut()).rejects.toThrow();
    await server.say(1, 503, null);
    await leaving;
    expect(server.methods).toEqual(["GET", "DELETE", "GET"]);
    expect(tab.session.value).toEqual(ANNE);
    await server.say(2, 200, ANNE);
    expect(tab.session.value).toEqual(ANNE);
    expect(tab.visit.value).toBe(before);
    expect(live.restarts).toBe(0);
  });

  it("is asked again where the answer to a sign-out is lost", async () => {
    // The session may have ended all the same.
    await started(ANNE);
    const leaving = expect(tab.signOut()).rejects.toThrow();
    await server.breakOff(1);
    await leaving;
    expect(tab.session.value).toEqual(ANNE);
    await server.say(2, 200, NOBODY);
    expect(tab.session.value).toEqual(NOBODY);
    expect(tab.away.value).toBe(true);
    expect(live.restarts).toBe(1);
  });

  it("stays who came in last, though an earlier try fails after it", async () => {
    const slow = expect(tab.signIn({ once: "slow" })).rejects.toThrow();
    const quick = tab.signIn({ key: "k" });
    await server.say(1, 200, ANNE);
    await quick;
    await server.say(0, 503, null);
    await slow;
    expect(tab.session.value).toEqual(ANNE);
    await server.say(2, 200, ANNE);
    expect(tab.session.value).toEqual(ANNE);
  });
});

describe("a tab beside others", () => {
  const other = () => new TestChannel("weir.session");

  it("shows whoever signs in in another one, and nothing of who was there", async () => {
    await started(ANNE);
    const before = tab.visit.value;
    other().postMessage();
    await server.say(1, 200, BOB);
    expect(tab.session.value).toEqual(BOB);
    expect(tab.visit.value).toBe(before + 1);
    expect(live.restarts).toBe(1);
  });

  it("goes on where they are the same", async () => {
    // A page would lose its place, and a chart its line, for nothing.
    await started(ANNE);
    const before = tab.visit.value;
    other().postMessage();
    await server.say(1, 200, ANNE);
    expect(tab.visit.value).toBe(before);
    expect(live.restarts).toBe(0);
  });

  it("is let in again with them", async () => {
    // A link that was denied tries no more by itself.
    await started(ANNE);
    live.link.value = { phase: "denied" };
    other().postMessage();
    await server.say(1, 200, ANNE);
    expect(live.restarts).toBe(1);
  });

  it("believes no answer of before it was told", async () => {
    tab.startSession();
    other().postMessage();
    await server.say(1, 200, BOB);
    await server.say(0, 200, ANNE);
    expect(tab.session.value).toEqual(BOB);
  });

  it.each([
    ["denied", 2],
    ["open", 1],
  ])("asks when it is looked at while its link is %s", async (phase, asked) => {
    // It may have slept through what the others told.
    await started(ANNE);
    live.link.value = { phase };
    page.hidden = true;
    page.dispatchEvent(new Event("visibilitychange"));
    expect(server.asked).toHaveLength(1);
    page.hidden = false;
    page.dispatchEvent(new Event("visibilitychange"));
    expect(server.asked).toHaveLength(asked);
  });

  it("is nobody's from the moment that its link welcomes somebody else", async () => {
    // Their numbers come before the server has told who they are.
    await started(ANNE);
    const before = tab.visit.value;
    live.welcomed.value = "bob";
    expect(tab.session.value).toBeNull();
    expect(tab.visit.value).toBe(before + 1);
    await server.say(1, 200, BOB);
    expect(tab.session.value).toEqual(BOB);
    expect(live.restarts).toBe(0);
  });

  it("follows as whoever the server has told", async () => {
    // The link was welcomed before somebody else signed in, and the server told after that.
    live.welcomed.value = "anne";
    await started(BOB);
    expect(live.restarts).toBe(1);
  });

  it("is told of a sign-in and a sign-out, also of one that fails", async () => {
    const heard = vi.fn();
    await started(NOBODY);
    other().onmessage = heard;
    const entering = tab.signIn({ key: "k" });
    await server.say(1, 200, ANNE);
    await entering;
    expect(heard).toHaveBeenCalledTimes(1);
    const leaving = expect(tab.signOut()).rejects.toThrow();
    expect(heard).toHaveBeenCalledTimes(1);
    await server.breakOff(2);
    await leaving;
    expect(heard).toHaveBeenCalledTimes(2);
  });

  it("begins another visit once somebody has signed out, or somebody else has come", async () => {
    await started(ANNE);
    const before = tab.visit.value;
    const leaving = tab.signOut();
    await server.say(1, 200, NOBODY);
    await leaving;
    expect(tab.visit.value).toBe(before + 1);
    await entered(ANNE);
    const during = tab.visit.value;
    await entered(BOB);
    // What was opened while it was under way has asked with the cookie of before.
    expect(tab.visit.value).toBe(during + 1);
  });
});

describe("a session that has ended", () => {
  const other = () => new TestChannel("weir.session");

  it("leaves the visit to whoever had it", async () => {
    // What they typed is on a page of this visit; it must not be lost for a session.
    await started(ANNE);
    const before = tab.visit.value;
    other().postMessage();
    await server.say(1, 200, NOBODY);
    expect(tab.away.value).toBe(true);
    expect(tab.visit.value).toBe(before);
    await entered(ANNE);
    expect(tab.away.value).toBe(false);
    expect(tab.visit.value).toBe(before);
  });

  it("leaves nothing to anybody else", async () => {
    await started(ANNE);
    const before = tab.visit.value;
    other().postMessage();
    await server.say(1, 200, NOBODY);
    await entered(BOB);
    expect(tab.visit.value).toBe(before + 1);
  });

  it("is over for its visitor once their link is denied, until it is let in again", async () => {
    await started(ANNE);
    const before = tab.visit.value;
    live.link.value = { phase: "denied" };
    expect(tab.away.value).toBe(true);
    page.dispatchEvent(new Event("visibilitychange"));
    await server.say(1, 200, NOBODY);
    expect(tab.away.value).toBe(true);
    live.welcomed.value = null;
    other().postMessage();
    await server.say(2, 200, ANNE);
    expect(tab.away.value).toBe(false);
    expect(tab.visit.value).toBe(before);
  });

  it("goes on in a tab that slept, where its link welcomes the same", async () => {
    await started(ANNE);
    const before = tab.visit.value;
    other().postMessage();
    await server.say(1, 200, NOBODY);
    live.welcomed.value = "anne";
    await server.say(2, 200, ANNE);
    expect(tab.session.value).toEqual(ANNE);
    expect(tab.visit.value).toBe(before);
  });

  it.each([
    ["somebody else", BOB, 1],
    ["the same", ANNE, 0],
  ])("is known to be of %s where the answer to a sign-in was lost", async (_, who, more) => {
    // What was opened while it was under way has asked with the cookie of before.
    await started(ANNE);
    const lost = expect(tab.signIn({ key: "k" })).rejects.toThrow();
    const during = tab.visit.value;
    await server.breakOff(1);
    await lost;
    expect(tab.session.value).toEqual(NOBODY);
    await server.say(2, 200, who);
    expect(tab.session.value).toEqual(who);
    expect(tab.visit.value).toBe(during + more);
  });
});
