/** Who is signed in. */
import { signal } from "@preact/signals";
import { call, get, post } from "../api/client";
import type { Session } from "../api/shapes";
import { live } from "../live/live";

const NOBODY: Session = { signed_in: false, tenant: null, scopes: [], key_id: null };

/** The session; null until the server has told. */
export const session = signal<Session | null>(null);

/** Asks the server who is signed in. */
export async function whoAmI(): Promise<Session> {
  session.value = await get<Session>("/session");
  return session.value;
}

/** Signs in with a key or a link's token. */
export async function signIn(credential: { key: string } | { once: string }): Promise<void> {
  const before = session.value;
  // The session before ends: what lists ask meanwhile would be refused.
  session.value = null;
  try {
    session.value = await post<Session>("/session", credential);
  } catch (error) {
    session.value = before;
    throw error;
  }
  live.restart();
}

/** Ends the session on the server. */
export async function signOut(): Promise<void> {
  await call<Session>({ method: "DELETE", path: "/session" });
  session.value = NOBODY;
  live.restart();
}

/** Tells whether the session may do something. */
export const may = (scope: string): boolean => session.value?.scopes.includes(scope) ?? false;
