/** Who is signed in. */
import { signal } from "@preact/signals";
import { call, get, post } from "../api/client";
import type { Session } from "../api/shapes";
import { live } from "../live/live";

/** The session; null until the server has told. */
export const session = signal<Session | null>(null);

/** How often somebody has signed in or out here. */
let turns = 0;

/** Asks the server who is signed in. */
export async function whoAmI(): Promise<void> {
  const turn = turns;
  const told = await get<Session>("/session");
  // Of before somebody signed in or out: it is true no more, however late it comes.
  if (turn === turns) session.value = told;
}

const AGAIN_MS = 2_000;

/** Asks until the server has told; one that does not answer is told by the pill. */
export function askWho(): void {
  whoAmI().catch(() => setTimeout(askWho, AGAIN_MS));
}

/** Signs in with a key or a link's token. */
export const signIn = (credential: { key: string } | { once: string }): Promise<void> =>
  turned(() => post<Session>("/session", credential));

/** Ends the session on the server. */
export const signOut = (): Promise<void> =>
  turned(async () => (await call<Session>({ method: "DELETE", path: "/session" })).body);

/** Has the server change who is signed in. */
async function turned(change: () => Promise<Session>): Promise<void> {
  turns += 1;
  // The session before ends: what lists ask meanwhile would be refused.
  session.value = null;
  try {
    session.value = await change().finally(() => {
      turns += 1;
    });
  } catch (error) {
    // It may have left the session before as it was, or have changed it and not said so.
    askWho();
    throw error;
  } finally {
    live.restart();
  }
}

/** Tells whether the session may do something. */
export const may = (scope: string): boolean => session.value?.scopes.includes(scope) ?? false;
