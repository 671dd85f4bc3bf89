/** Who is signed in. */
import { signal } from "@preact/signals";
import { call, get, post } from "../api/client";
import type { Session } from "../api/shapes";
import { live } from "../live/live";

const NOBODY: Session = { signed_in: false, tenant: null, scopes: [], key_id: null };

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
export async function signIn(credential: { key: string } | { once: string }): Promise<void> {
  turns += 1;
  // The session before ends: what lists ask meanwhile would be refused.
  session.value = null;
  try {
    session.value = await post<Session>("/session", credential).finally(() => {
      turns += 1;
    });
  } catch (error) {
    // It may have left the session before as it was, or have made one and not said so.
    askWho();
    throw error;
  }
  live.restart();
}

/** Ends the session on the server. */
export async function signOut(): Promise<void> {
  await call<Session>({ method: "DELETE", path: "/session" });
  turns += 1;
  session.value = NOBODY;
  live.restart();
}

/** Tells whether the session may do something. */
export const may = (scope: string): boolean => session.value?.scopes.includes(scope) ?? false;
