/** The shapes of the API that pages use, by the names of the server's models. */
import type { Fresh, ProblemPlace } from "../live/wire";

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

export interface Session {
  readonly signed_in: boolean;
  readonly tenant: string | null;
  readonly scopes: readonly string[];
  readonly key_id: string | null;
}

export interface ShownKey {
  readonly id: string;
  readonly label: string;
  readonly key: string;
}

export interface Metric {
  readonly name: string;
  readonly version: number;
  readonly unit: string | null;
  readonly by: readonly string[];
  readonly aggregates: readonly string[];
  readonly resolution_ms: number;
  readonly series: number | null;
  readonly capped: boolean;
  readonly active: boolean;
}

export interface Change {
  readonly version: number;
  readonly op: "put" | "delete";
  readonly text: string | null;
  readonly by: string;
  readonly at_ms: number;
}

export interface MetricDetail extends Metric {
  readonly lateness_ms: number;
  readonly keep_ms: Readonly<Record<string, number>>;
  readonly versions: readonly Change[];
}

/** A tile of a board: a query without its range, and how to draw it. */
export interface Tile {
  readonly type: "number" | "chart" | "top" | "note";
  readonly title?: string;
  readonly size?: "S" | "M" | "L";
  readonly metric?: string;
  readonly aggregate?: string;
  readonly aggregates?: readonly string[];
  readonly by?: readonly string[];
  readonly where?: readonly unknown[];
  readonly window?: string | { readonly kind?: string; readonly length?: string };
  readonly text?: string;
}

export interface Board {
  readonly name: string;
  readonly title: string;
  readonly version: number;
  readonly tiles: readonly Tile[];
}

export interface Definition {
  readonly kind: string;
  readonly name: string;
  readonly version: number;
  readonly text: string;
  readonly parsed: Readonly<Record<string, unknown>>;
  readonly by: string;
  readonly at_ms: number;
  readonly state: string;
}

export interface Validation {
  readonly ok: boolean;
  readonly message: string | null;
  readonly code: string | null;
  readonly errors: readonly ProblemPlace[];
  readonly estimate: Readonly<Record<string, unknown>> | null;
}

export interface LedgerMinute {
  readonly minute_ms: number;
  readonly received: number | null;
  readonly counted: number;
  readonly duplicate: number;
  readonly quarantined: number;
  readonly beyond_horizon: number;
  readonly erased: number;
  readonly difference: number | null;
  readonly open: boolean;
}

export interface Ledger extends Page<LedgerMinute> {
  readonly batches: {
    readonly records: number;
    readonly batches: number;
    readonly difference: number;
  };
  readonly fresh: Fresh;
}

export interface StatusPart {
  readonly name: string;
  readonly instance: string;
  readonly running: boolean;
  readonly ready: boolean;
  readonly status: string;
  readonly at_ms: number;
  readonly since_ms: number;
  readonly busy: number | null;
  readonly in: number | null;
  readonly lag_ms: number | null;
  readonly version: string;
  readonly rss_bytes: number | null;
}

export interface Status {
  readonly now_ms: number;
  readonly epoch: number;
  readonly rev: number;
  readonly fresh: Fresh;
  readonly parts: readonly StatusPart[];
}

export interface SeenType {
  readonly type: string;
  readonly sources: readonly string[];
  readonly count: number;
  readonly last_minute_ms: number;
}

export interface IngestAddress {
  readonly url: string;
  readonly events_url: string;
}

export interface PreviewEvent {
  readonly id: string;
  readonly type: string;
  readonly time_ms: number | null;
  readonly matched: boolean;
  readonly value: number | null;
  readonly series: Readonly<Record<string, string | null>> | null;
  readonly reason: string | null;
}

export interface Preview {
  readonly seen: number;
  readonly matched: number;
  readonly refused: number;
  readonly events: readonly PreviewEvent[];
}
