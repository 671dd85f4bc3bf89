/**
 * Who is signed in, in whichever tab: the session is the browser's.
 *
 * Whoever it is may change without a word from this tab. The tabs tell each other; one that has
 * slept through that is told by the key of its next welcome, or asks when it is looked at.
 */
import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { call, get, post } from "../api/client";
import type { Session } from "../api/shapes";
import { live } from "../live/live";

/** The session; null until the server has told. */
export const session = signal<Session | null>(null);

/** Counts who has come: what one was shown, or has typed, is not the next one's. */
export const visit = signal(0);

const NOBODY: Session = { signed_in: false, tenant: null, scopes: [], key_id: null };

const isDenied = () => live.link.value.phase === "denied";

/** Whether nobody is signed in, as far as is known: what is on the screen is nobody's to see. */
export const away = computed(
  () => isDenied() || (session.value !== null && !session.value.signed_in),
);

/** Whose session was told last, by key, null of nobody; undefined while it is not known. */
let known: string | null | undefined;

/** Whose visit it is, by key: it outlasts their session. Undefined before anybody has come. */
let visitor: string | undefined;

/** How often somebody has signed in or out: what was asked before is true no more. */
let turns = 0;

/** The other tabs, from the start of this one. */
let others: BroadcastChannel | null = null;

/** Asks the server who is signed in. */
export async function whoAmI(): Promise<void> {
  const turn = turns;
  const told = await get<Session>("/session");
  if (turn === turns) show(told);
}

const AGAIN_MS = 2_000;

/** Asks until the server has told; one that does not answer is told by the pill. */
export function askWho(): void {
  const turn = turns;
  const again = () => turn === turns && askWho();
  whoAmI().catch(() => setTimeout(again, AGAIN_MS));
}

/** Asks now, and for as long as the page is there whenever somebody else may have signed in. */
export function startSession(): void {
  others = new BroadcastChannel("weir.session");
  others.onmessage = askAnew;
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isDenied()) askAnew();
  });
  effect(() => {
    const key = live.welcomed.value;
    if (key !== null && known !== undefined && key !== known) untracked(() => askAbout(key));
  });
  askWho();
}

function askAnew(): void {
  turns += 1;
  askWho();
}

/** Somebody is signed in who was not told: until that is told, nobody is. */
function askAbout(key: string): void {
  turns += 1;
  known = undefined;
  batch(() => {
    session.value = null;
    receive(key);
  });
  askWho();
}

/** Takes somebody in. Nothing of whoever was there before stays for them; what is theirs does. */
function receive(key: string): void {
  if (visitor !== undefined && visitor !== key) visit.value += 1;
  visitor = key;
}

/** Ends the visit: nothing of it stays. */
function leave(): void {
  visitor = undefined;
  visit.value += 1;
}

/** Shows who is signed in, and follows as they. */
function show(told: Session): void {
  const key = told.signed_in ? (told.key_id ?? "") : null;
  known = key;
  if (!isLiveOf(key)) live.restart();
  batch(() => {
    session.value = told;
    if (key !== null) receive(key);
  });
}

/** Tells whether the live link is theirs; one that was denied is nobody's, and stays so. */
function isLiveOf(key: string | null): boolean {
  if (isDenied()) return key === null;
  return live.welcomed.value === null || live.welcomed.value === key;
}

/** Signs in with a key or a link's token. */
export async function signIn(credential: { key: string } | { once: string }): Promise<void> {
  // The session before ends: what lists ask meanwhile would be refused.
  known = undefined;
  session.value = NOBODY;
  try {
    await turned(() => post<Session>("/session", credential), show);
  } catch (error) {
    // The cookie may be there though its answer is not; the link of before is not theirs.
    live.restart();
    throw error;
  }
}

/** Ends the session on the server; until that has answered, whoever is signed in stays so. */
export const signOut = (): Promise<void> =>
  turned(
    async () => (await call<Session>({ method: "DELETE", path: "/session" })).body,
    (told) => {
      leave();
      show(told);
    },
  );

/** Has the server change who is signed in, and takes over who that is. */
async function turned(change: () => Promise<Session>, take: (told: Session) => void) {
  turns += 1;
  try {
    const told = await change();
    turns += 1;
    live.restart();
    batch(() => take(told));
  } catch (error) {
    // It may have left the session before as it was, or have changed it and not said so.
    askAnew();
    throw error;
  } finally {
    others?.postMessage(null);
  }
}

/** Tells whether the session may do something. */
export const may = (scope: string): boolean => session.value?.scopes.includes(scope) ?? false;
