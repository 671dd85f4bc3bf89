/**
 * The frames of the live protocol `weir.v1`, as they stand on the wire.
 *
 * Unknown members are ignored, so that a newer server can say more. What cannot be
 * read at all is null: one bad frame never takes the page with it.
 */

export const PROTOCOL = "weir.v1";

/** A finite number, or null for what is not known. */
export type Cell = number | null;

/**
 * `[name, count, low, high]` of one of the most frequent values; of all that are not listed
 * there are neither name nor count, only how often one of them came at most.
 */
export type TopItem = readonly [
  name: string | null,
  count: number | null,
  low: number,
  high: number,
];

/** The columns of a series for the windows that a frame lists. */
export interface WireColumns {
  readonly k: number;
  readonly value?: readonly Cell[];
  readonly low?: readonly Cell[];
  readonly high?: readonly Cell[];
  readonly count?: readonly Cell[];
  readonly items?: readonly (readonly TopItem[] | null)[];
  readonly state: string;
  readonly compare?: readonly WireCompare[];
}

export interface WireCompare {
  readonly offset: string;
  readonly value: readonly Cell[];
  readonly low: readonly Cell[];
  readonly high: readonly Cell[];
  readonly count: readonly Cell[];
  readonly state: string;
}

/** A series as it is first named: its number, dimensions and color slot. */
export interface WireName {
  readonly k: number;
  readonly by: Readonly<Record<string, string | null>>;
  readonly slot?: number;
  readonly other?: boolean;
}

export interface WireMetric {
  readonly name: string;
  readonly version: number;
  readonly unit: string | null;
  readonly resolution_ms: number;
  readonly lateness_ms: number;
}

export interface WireNote {
  readonly code: string;
  readonly message: string;
}

/** What late events changed in one window of one series; both with their ends, where known. */
export interface Correction {
  readonly t_ms: number;
  readonly k: number;
  readonly was: Cell;
  readonly was_low: Cell;
  readonly was_high: Cell;
  readonly is: Cell;
  readonly is_low: Cell;
  readonly is_high: Cell;
  readonly events: number;
  readonly late_ms: number;
}

/** The answer to a query, over HTTP and in a snapshot. */
export interface WireAnswer {
  readonly metric: WireMetric;
  readonly epoch: number;
  readonly rev: number;
  readonly final_to_ms: number | null;
  readonly fresh?: { readonly processed_through_ms?: number | null };
  readonly t_ms: readonly number[];
  readonly of: number;
  readonly corrections?: readonly Correction[];
  readonly notes?: readonly WireNote[];
  readonly series: readonly (WireName & WireColumns)[];
}

export interface WireDelta {
  readonly epoch: number;
  readonly prev: number;
  readonly rev: number;
  readonly final_to_ms: number | null;
  readonly first_t_ms?: number | null;
  readonly t_ms: readonly number[];
  readonly add: readonly WireName[];
  readonly del: readonly number[];
  readonly series: readonly WireColumns[];
  readonly corrections?: readonly Correction[];
  readonly of?: number;
  readonly notes?: readonly WireNote[];
}

export type FreshStatus = "live" | "behind" | "stale" | "rebuilding";

/** How old the numbers are, as the server judges it. */
export interface Fresh {
  readonly status: FreshStatus;
  readonly processed_through_ms: number | null;
  readonly received_ms: number | null;
  readonly evaluated_ms: number | null;
  readonly since_ms: number | null;
  readonly part: string | null;
  readonly progress: number | null;
}

/** A refusal: what was required, what came, what to do. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly errors?: readonly ProblemPlace[];
}

export interface ProblemPlace {
  readonly pointer: string;
  readonly required: string;
  readonly got: string;
  readonly mend: string;
  /** In an expression: two lines, its text and a caret below the place. */
  readonly excerpt?: string | null;
}

/** One sampled event as ingest copied it. */
export interface TailEvent {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly weirsource?: string;
  readonly received_ms: number;
  readonly time_ms?: number | null;
  readonly subject?: string | null;
  readonly at: readonly [partition: number, offset: number];
  readonly data: string;
  readonly cut: boolean;
  readonly reason?: string | null;
}

/** What became of an event. */
export interface Fate {
  readonly id: string;
  readonly at?: readonly [partition: number, offset: number];
  readonly fate: string;
  readonly reason?: string | null;
  readonly refused?: readonly { readonly metric: string; readonly code: string }[];
}

/** One part of the pipeline, from its heartbeat. */
export interface Part {
  readonly name: string;
  readonly status: string;
  readonly since_ms?: number | null;
  readonly busy?: number | null;
  readonly in?: number | null;
  readonly lag_ms?: number | null;
  readonly version?: string | null;
}

export type ServerFrame =
  | {
      readonly op: "welcome";
      readonly epoch: number;
      readonly rev: number;
      readonly now_ms: number;
      readonly heartbeat_ms: number;
      /** The key that vouches for whoever was welcomed; a server of an older release names none. */
      readonly key_id?: string;
      readonly scopes: readonly string[];
      readonly limits: { readonly subscriptions: number; readonly hz: number };
    }
  | { readonly op: "subscribed"; readonly id: number; readonly key: string }
  | {
      readonly op: "snapshot";
      readonly key: string;
      readonly epoch: number;
      readonly rev: number;
      readonly part: number;
      readonly parts: number;
      readonly answer: WireAnswer;
    }
  | ({ readonly op: "delta"; readonly key: string } & WireDelta)
  | {
      readonly op: "heartbeat";
      readonly now_ms: number;
      readonly epoch: number;
      readonly rev: number;
      readonly fresh: Fresh;
    }
  | {
      readonly op: "tail";
      readonly key: string;
      readonly shown: number;
      readonly of: number;
      readonly events: readonly TailEvent[];
      readonly fates?: readonly Fate[];
    }
  | {
      readonly op: "pipeline";
      readonly key: string;
      readonly bottleneck: string | null;
      readonly log_warning?: string | null;
      readonly quarantine_warning?: string | null;
      readonly parts: readonly Part[];
    }
  | {
      /** Which alerts fire; everything that changed up to `seq` was told before it. */
      readonly op: "alerts";
      readonly key: string;
      readonly seq: number;
      readonly open: readonly string[];
    }
  | { readonly op: "error"; readonly id: number | null; readonly problem: Problem }
  | {
      readonly op: "goodbye";
      readonly code: number;
      readonly reason: string;
      readonly after_ms: number;
    }
  | { readonly op: "other" };

const KNOWN = new Set([
  "welcome",
  "subscribed",
  "snapshot",
  "delta",
  "heartbeat",
  "tail",
  "pipeline",
  "alerts",
  "error",
  "goodbye",
]);

/** Returns the frame in a message; `other` for one that this client does not know; null if unreadable. */
export function readFrame(text: string): ServerFrame | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof body !== "object" || body === null || !("op" in body)) return null;
  return KNOWN.has(String(body.op)) ? (body as ServerFrame) : { op: "other" };
}

/** Conditions of a tail: type (with `*`), fields, text. */
export interface TailFilter {
  readonly type?: string;
  readonly where?: readonly (readonly [path: string, op: string, value: unknown])[];
  readonly text?: string;
}

/** What a subscription follows. */
export type Topic =
  | { readonly to: "query"; readonly query: Readonly<Record<string, unknown>> }
  | { readonly to: "tail"; readonly filter: TailFilter }
  | { readonly to: "pipeline" }
  | { readonly to: "alerts" };

/** Up to where a client's answer goes. */
export interface Position {
  readonly epoch: number;
  readonly rev: number;
}

export type ClientFrame =
  | { readonly op: "hello"; readonly v: 1; readonly auth?: string }
  | ({ readonly op: "subscribe"; readonly id: number; readonly from?: Position } & Topic)
  | { readonly op: "unsubscribe"; readonly id: number }
  | { readonly op: "pace"; readonly hz: number };
