import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Session } from "../../src/api/shapes";
import { session, signIn, signOut, whoAmI } from "../../src/lib/session";
import { live } from "../../src/live/live";

vi.mock("../../src/live/live", () => ({
  currentKey: () => null,
  live: { restart: vi.fn() },
}));

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

const settled = () => new Promise<void>((done) => setTimeout(done));

let server: Server;

beforeEach(() => {
  server = new Server();
  vi.stubGlobal("fetch", server.fetch);
  vi.mocked(live.restart).mockClear();
  session.value = null;
});

afterEach(() => vi.unstubAllGlobals());

describe("who is signed in", () => {
  it.each([true, false])(
    "is not told by an answer of before (asked before: %s)",
    async (before) => {
      // The server said "nobody" while the sign-in was under way.
      const asks = before ? [whoAmI(), signIn({ key: "k" })] : [signIn({ key: "k" }), whoAmI()];
      const [get, post] = before ? [0, 1] : [1, 0];
      await server.say(post, 200, ANNE);
      await server.say(get, 200, NOBODY);
      await Promise.all(asks);
      expect(session.value).toEqual(ANNE);
    },
  );

  it("is asked again where a sign-in is refused", async () => {
    // A link that was used, opened by somebody whose session goes on.
    const first = whoAmI();
    const refused = expect(signIn({ once: "used" })).rejects.toThrow("used");
    await server.say(0, 200, ANNE);
    await server.say(1, 401, { status: 401, code: "unauthorized", message: "it was used" });
    await Promise.all([first, refused]);
    expect(server.methods).toEqual(["GET", "POST", "GET"]);
    // What it was before, nobody knows any more.
    expect(session.value).toBeNull();
    await server.say(2, 200, ANNE);
    expect(session.value).toEqual(ANNE);
  });

  it("is not told while somebody signs in", async () => {
    // Whatever it says is of the session that ends: lists would ask with a cookie that is none.
    const first = whoAmI();
    const entering = signIn({ key: "k" });
    await server.say(0, 200, BOB);
    await first;
    expect(session.value).toBeNull();
    await server.say(1, 200, ANNE);
    await entering;
    expect(session.value).toEqual(ANNE);
  });

  it("is asked, and followed live, where the answer to a sign-in breaks off", async () => {
    // The cookie is there by then, and the live link of before is not theirs.
    const broken = expect(signIn({ once: "new" })).rejects.toThrow();
    await server.breakOff(0);
    await broken;
    expect(live.restart).toHaveBeenCalledTimes(1);
    await server.say(1, 200, ANNE);
    expect(session.value).toEqual(ANNE);
  });

  it("is not known while somebody signs out", async () => {
    // What lists ask until then would be refused.
    session.value = ANNE;
    const leaving = signOut();
    expect(session.value).toBeNull();
    await server.say(0, 200, NOBODY);
    await leaving;
    expect(session.value).toEqual(NOBODY);
    expect(live.restart).toHaveBeenCalledTimes(1);
  });

  it.each([true, false])(
    "is nobody after a sign-out, whatever an answer of before says (asked before: %s)",
    async (before) => {
      // The session still stood when the server said so.
      const asks = before ? [whoAmI(), signOut()] : [signOut(), whoAmI()];
      const [get, end] = before ? [0, 1] : [1, 0];
      await server.say(end, 200, NOBODY);
      await server.say(get, 200, ANNE);
      await Promise.all(asks);
      expect(session.value).toEqual(NOBODY);
    },
  );

  it.each(["refused", "lost"])("is asked again where a sign-out is %s", async (how) => {
    // Nobody is shown as signed in whose session may have ended, nor the other way round.
    session.value = ANNE;
    const leaving = expect(signOut()).rejects.toThrow();
    await (how === "lost" ? server.breakOff(0) : server.say(0, 503, null));
    await leaving;
    expect(server.methods).toEqual(["DELETE", "GET"]);
    expect(session.value).toBeNull();
    await server.say(1, 200, how === "lost" ? NOBODY : ANNE);
    expect(session.value).toEqual(how === "lost" ? NOBODY : ANNE);
  });

  it("stays who came in last, though an earlier try fails after it", async () => {
    const slow = expect(signIn({ once: "slow" })).rejects.toThrow();
    const quick = signIn({ key: "k" });
    await server.say(1, 200, ANNE);
    await quick;
    await server.say(0, 503, null);
    await slow;
    expect(session.value).toEqual(ANNE);
    await server.say(2, 200, ANNE);
    expect(session.value).toEqual(ANNE);
  });
});
