import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Session } from "../../src/api/shapes";
import { session, signIn, whoAmI } from "../../src/lib/session";

vi.mock("../../src/live/live", () => ({
  currentKey: () => null,
  live: { restart: () => undefined },
}));

const ANNE: Session = { signed_in: true, tenant: "acme", scopes: ["read"], key_id: "anne" };
const NOBODY: Session = { signed_in: false, tenant: null, scopes: [], key_id: null };

/** A server whose answers the test gives by hand, in the order that it likes. */
class Server {
  readonly asked: { method: string; answer: (status: number, body: unknown) => void }[] = [];

  readonly fetch = (_path: string, request: RequestInit): Promise<Response> =>
    new Promise((done) => {
      this.asked.push({
        method: request.method ?? "GET",
        answer: (status, body) => done(new Response(JSON.stringify(body), { status })),
      });
    });

  say(at: number, status: number, body: unknown): Promise<void> {
    this.asked[at]?.answer(status, body);
    return settled();
  }
}

const settled = () => new Promise<void>((done) => setTimeout(done));

let server: Server;

beforeEach(() => {
  server = new Server();
  vi.stubGlobal("fetch", server.fetch);
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
    expect(server.asked.map((one) => one.method)).toEqual(["GET", "POST", "GET"]);
    await server.say(2, 200, ANNE);
    expect(session.value).toEqual(ANNE);
  });

  it("stays who came in last, though an earlier try fails after it", async () => {
    const slow = expect(signIn({ once: "slow" })).rejects.toThrow();
    const quick = signIn({ key: "k" });
    await server.say(1, 200, ANNE);
    await quick;
    await server.say(0, 503, null);
    await slow;
    await server.say(2, 200, ANNE);
    expect(session.value).toEqual(ANNE);
  });
});
