/**
 * The one live connection of the page: it performs what `link.ts` decides, keeps who
 * follows what, and hands out newest states at most once per animation frame.
 *
 * It holds no queue: while a page is paused or hidden the newest state simply replaces
 * the one before.
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type Counted, EMPTY_FEED, type Feed, feedAfter, positionOf } from "./feed";
import { type Happening, IDLE, type Link, linkAfter } from "./link";
import { type ClientFrame, PROTOCOL, readFrame, type ServerFrame, type Topic } from "./wire";

/** How long what scrolled off the screen is still followed. */
export const LEAVE_MS = 5_000;
/** After how long what was refused is asked again, at first and later; up to half more by chance. */
export const AGAIN_MS = 10_000;
export const LATER_AGAIN_MS = 60_000;
/** The most subscriptions of a socket, until the server says it. */
const USUAL_ROOM = 64;
const HIDDEN_HZ = 0.1;
const CALM_HZ = 0.2;
const TICK_MS = 250;

/** What of a WebSocket is used. */
export interface Wire {
  onopen: (() => void) | null;
  onmessage: ((message: { data: unknown }) => void) | null;
  onclose: ((close: { code: number; reason: string }) => void) | null;
  send(text: string): void;
  close(): void;
}

/**
 * Tells whether a metric may be another one than before: refused, answered again, edited, of
 * another epoch. The words of a refusal may hold a count, and are others each time.
 */
function isOther(before: Feed, after: Feed): boolean {
  if (before.problem?.code !== after.problem?.code) return true;
  const [one, other] = [before.model, after.model];
  if (one === null || other === null) return false;
  return one.metric.version !== other.metric.version || one.epoch !== other.epoch;
}

/** Everything the client takes from its surroundings, so that tests can pass their own. */
export interface Surroundings {
  open(protocol: string): Wire;
  nowMs(): number;
  chance(): number;
  onFrame(draw: () => void): void;
  after(ms: number, act: () => void): () => void;
  /** The key to sign in with, or null where the session's cookie counts. */
  key(): string | null;
}

interface Follower {
  readonly topic: Topic;
  readonly text: string;
  id: number;
  key: string | null;
  feed: Feed;
  followers: number;
  forget: (() => void) | null;
  /** How often in a row it was refused. */
  refusals: number;
  /** Calls off that it is asked for again; null unless it was refused. */
  callOff: (() => void) | null;
  readonly shown: Signal<Feed>;
  readonly take: ((frame: ServerFrame) => void) | null;
}

/** A followed query: its newest state, and how to stop. */
export interface Followed {
  readonly state: ReadonlySignal<Feed>;
  release(): void;
}

export class LiveClient {
  readonly link: Signal<Link> = signal(IDLE);
  readonly paused: Signal<boolean> = signal(false);
  /** Counts what may have made untrue what a page has read of its metrics. */
  readonly changes: Signal<number> = signal(0);
  /** The key of whoever was welcomed last: what is held was told to them. Null before that. */
  readonly welcomed: Signal<string | null> = signal(null);
  private readonly around: Surroundings;
  private wire: Wire | null = null;
  private readonly byId = new Map<number, Follower>();
  /** Those that are subscribed, of which a server allows so many. */
  private readonly asked = new Set<Follower>();
  private room = USUAL_ROOM;
  private readonly dirty = new Set<Follower>();
  private drawing = false;
  private counted: Counted | null = null;
  private nextId = 1;
  private hidden = false;
  private calm = false;

  constructor(around: Surroundings) {
    this.around = around;
  }

  /** Connects, and stays connected until the page goes away. */
  start(): void {
    this.happened({ type: "start" });
    const tick = () => {
      this.happened({ type: "tick" });
      this.around.after(TICK_MS, tick);
    };
    this.around.after(TICK_MS, tick);
  }

  /** Connects anew with another credential; what was told by the one before is forgotten. */
  restart(): void {
    this.wire?.close();
    this.wire = null;
    this.forget();
    this.welcomed.value = null;
    this.link.value = IDLE;
    this.happened({ type: "start" });
  }

  /** Tells that waiting any longer is needless: the tab is looked at, the network is back. */
  wake(): void {
    this.happened({ type: "wake" });
  }

  /** Slows down while nobody looks. */
  setHidden(hidden: boolean): void {
    this.hidden = hidden;
    this.sendPace();
    if (hidden) return;
    this.wake();
    this.letIn();
  }

  /** Slows down for who asked for less motion. */
  setCalm(calm: boolean): void {
    this.calm = calm;
    this.sendPace();
  }

  /** Holds the screen still; on return it shows the newest, without a replay. */
  setPaused(paused: boolean): void {
    this.paused.value = paused;
    this.sendPace();
    if (paused) return;
    for (const follower of this.byId.values()) this.show(follower);
  }

  /** Follows a query; equal queries share one subscription. */
  query(query: Readonly<Record<string, unknown>>): Followed {
    const topic: Topic = { to: "query", query };
    const text = JSON.stringify(topic);
    const known = [...this.byId.values()].find((f) => f.text === text && f.take === null);
    const follower = known ?? this.added(topic, text, null);
    follower.followers += 1;
    follower.forget?.();
    follower.forget = null;
    this.letIn();
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      follower.followers -= 1;
      if (follower.followers > 0) return;
      follower.forget = this.around.after(LEAVE_MS, () => this.removed(follower));
    };
    return { state: follower.shown, release };
  }

  /** Follows a tail, the pipeline or alerts; frames come as they are. Returns how to stop. */
  frames(topic: Topic, take: (frame: ServerFrame) => void): () => void {
    const follower = this.added(topic, JSON.stringify(topic), take);
    return () => this.removed(follower);
  }

  private added(topic: Topic, text: string, take: Follower["take"]): Follower {
    const id = this.nextId++;
    const follower: Follower = {
      topic,
      text,
      id,
      key: null,
      feed: EMPTY_FEED,
      followers: 0,
      forget: null,
      refusals: 0,
      callOff: null,
      shown: signal(EMPTY_FEED),
      take,
    };
    this.byId.set(id, follower);
    if (this.link.value.phase === "open") this.subscribe(follower);
    return follower;
  }

  private removed(follower: Follower): void {
    this.leave(follower);
    this.letIn();
  }

  private leave(follower: Follower): void {
    follower.callOff?.();
    follower.forget?.();
    if (!this.byId.delete(follower.id)) return;
    this.dirty.delete(follower);
    if (!this.asked.delete(follower) || this.link.value.phase !== "open") return;
    this.send({ op: "unsubscribe", id: follower.id });
  }

  /** Subscribes those who found no room, as far as there is some now. */
  private letIn(): void {
    if (this.link.value.phase !== "open") return;
    for (const one of this.byId.values()) {
      if (this.asked.size >= this.room) return;
      if (!this.asked.has(one) && !one.callOff && !one.forget) this.subscribe(one);
    }
  }

  /** Makes room for one more, at the cost of what is followed only since nobody knows who returns. */
  private hasRoom(): boolean {
    while (this.asked.size >= this.room) {
      const left = [...this.asked].find((one) => one.forget !== null);
      if (!left) return false;
      this.leave(left);
    }
    return true;
  }

  private subscribe(follower: Follower): void {
    // One too many would end the socket: who finds no room waits until another leaves.
    if (!this.asked.has(follower) && !this.hasRoom()) return;
    this.asked.add(follower);
    follower.key = null;
    follower.callOff?.();
    follower.callOff = null;
    // What was refused may be of another version by now: that begins with a snapshot.
    const resumes = follower.take === null && follower.feed.problem === null;
    const from = resumes ? positionOf(follower.feed) : null;
    const asked = { op: "subscribe" as const, id: follower.id, ...follower.topic };
    this.send(from === null ? asked : { ...asked, from });
  }

  /** Asks again for what was refused, more and more seldom: what was wrong may be mended. */
  private askAgain(follower: Follower): void {
    follower.callOff?.();
    const waitMs = Math.min(LATER_AGAIN_MS, AGAIN_MS * 2 ** follower.refusals);
    follower.refusals += 1;
    // Spread, since one edit is refused to many tiles of many screens at once.
    follower.callOff = this.around.after(waitMs * (1 + this.around.chance() / 2), () => {
      follower.callOff = null;
      if (!this.hidden && this.link.value.phase === "open") this.subscribe(follower);
    });
  }

  /** Asks again, under a new number, for what a follower has missed. */
  private resume(follower: Follower): void {
    this.byId.delete(follower.id);
    this.send({ op: "unsubscribe", id: follower.id });
    follower.id = this.nextId++;
    this.byId.set(follower.id, follower);
    this.subscribe(follower);
  }

  private happened(what: Happening): void {
    const at = { nowMs: this.around.nowMs(), chance: this.around.chance() };
    const { link, effects } = linkAfter(this.link.value, what, at);
    if (link !== this.link.value) this.link.value = link;
    for (const effect of effects) {
      if (effect === "connect") this.connect();
      else if (effect === "hello") this.hello();
      else if (effect === "resubscribe") this.resubscribe();
      else this.drop();
    }
  }

  private connect(): void {
    const wire = this.around.open(PROTOCOL);
    this.wire = wire;
    const current = () => this.wire === wire;
    wire.onopen = () => current() && this.happened({ type: "opened" });
    wire.onmessage = (message) => current() && this.received(message.data);
    wire.onclose = ({ code, reason }) => {
      if (!current()) return;
      this.wire = null;
      this.happened({ type: "closed", code, reason });
    };
  }

  private drop(): void {
    const wire = this.wire;
    this.wire = null;
    wire?.close();
  }

  private hello(): void {
    const key = this.around.key();
    this.send(key === null ? { op: "hello", v: 1 } : { op: "hello", v: 1, auth: key });
  }

  private resubscribe(): void {
    this.sendPace();
    this.asked.clear();
    for (const follower of [...this.byId.values()]) {
      if (follower.forget === null) this.subscribe(follower);
      else this.leave(follower);
    }
  }

  private sendPace(): void {
    if (this.link.value.phase !== "open") return;
    this.send({ op: "pace", hz: this.pace() });
  }

  private pace(): number {
    if (this.paused.value) return 0;
    if (this.hidden) return HIDDEN_HZ;
    return this.calm ? CALM_HZ : this.link.value.maxHz;
  }

  private send(frame: ClientFrame): void {
    this.wire?.send(JSON.stringify(frame));
  }

  private forget(): void {
    this.dirty.clear();
    for (const follower of this.byId.values()) {
      follower.key = null;
      follower.feed = EMPTY_FEED;
      follower.shown.value = EMPTY_FEED;
    }
  }

  /** Forgets what another was told: a cookie may be somebody else's when a link comes back. */
  private greeted(key: string): void {
    if (this.welcomed.value !== null && this.welcomed.value !== key) this.forget();
    this.welcomed.value = key;
  }

  private received(data: unknown): void {
    const frame = typeof data === "string" ? readFrame(data) : null;
    if (frame === null) return;
    // First of all: with a welcome, what is held is asked to be resumed.
    if (frame.op === "welcome") {
      this.room = frame.limits.subscriptions ?? USUAL_ROOM;
      if (frame.key_id) this.greeted(frame.key_id);
    }
    this.happened({ type: "frame", frame });
    if (frame.op === "heartbeat") {
      const { epoch, rev, fresh } = frame;
      this.counted = { epoch, rev, throughMs: fresh.processed_through_ms };
    }
    if (frame.op === "subscribed") {
      const follower = this.byId.get(frame.id);
      if (follower) follower.key = frame.key;
      follower?.take?.(frame);
      return;
    }
    for (const follower of this.concerned(frame)) this.taken(follower, frame);
  }

  private concerned(frame: ServerFrame): Follower[] {
    if (frame.op === "error") {
      const follower = frame.id === null ? undefined : this.byId.get(frame.id);
      return follower ? [follower] : [];
    }
    if (!("key" in frame)) return [];
    return [...this.byId.values()].filter((follower) => follower.key === frame.key);
  }

  private taken(follower: Follower, frame: ServerFrame): void {
    const problem = frame.op === "error" ? frame.problem : null;
    // The server holds nothing of what it has refused.
    if (problem) this.asked.delete(follower);
    if (follower.take) follower.take(frame);
    else this.fed(follower, frame);
    if (!follower.feed.problem && !problem) follower.refusals = 0;
    if (!problem) return;
    // What a connection may do is settled as it is welcomed: until the next one nobody asks again.
    if (problem.status === 403) follower.callOff = () => {};
    // Whoever was told may have left.
    else if (this.byId.has(follower.id)) this.askAgain(follower);
    this.letIn();
  }

  private fed(follower: Follower, frame: ServerFrame): void {
    const { feed, resume } = feedAfter(follower.feed, frame, this.counted);
    if (isOther(follower.feed, feed)) this.changes.value += 1;
    follower.feed = feed;
    if (resume) this.resume(follower);
    // A paused screen still fills what it has not shown at all yet.
    if (!this.paused.value || follower.shown.value.model === null) this.show(follower);
  }

  private show(follower: Follower): void {
    this.dirty.add(follower);
    if (this.drawing) return;
    this.drawing = true;
    this.around.onFrame(() => {
      this.drawing = false;
      for (const one of this.dirty) one.shown.value = one.feed;
      this.dirty.clear();
    });
  }
}
