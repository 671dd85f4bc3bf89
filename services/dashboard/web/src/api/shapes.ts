/**
 * The shapes of the API, by the names of the server's models.
 *
 * `schema.d.ts` is made from the server's OpenAPI description (`npm run types`); here is
 * only what that description leaves open.
 */
import type { Board as WireBoard } from "./schema";

export type {
  Alert,
  AlertDetail,
  Change,
  Channel,
  ChannelTest,
  Correction,
  Happened,
  IngestAddress,
  LatenessTold,
  LateShare,
  Ledger,
  LedgerMinute,
  Metric,
  MetricDetail,
  MetricLedger,
  MetricMinute,
  Part as StatusPart,
  Preview,
  PreviewEvent,
  QuarantineSummary,
  Rule,
  RuleGroup,
  SeenType,
  Session,
  ShownKey,
  Silence,
  SilencePreview,
  SourceLateness,
  Status,
  StoredDefinition as Definition,
  Validation,
} from "./schema";

/** A list; `next` is the cursor of the following page, or null. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string | null;
}

/** A tile of a board: a query without its range, and how to draw it. */
export interface Tile {
  readonly type: "number" | "chart" | "top" | "note";
  readonly title?: string;
  readonly size?: "S" | "M" | "L";
  readonly metric?: string | null;
  readonly aggregate?: string | null;
  readonly aggregates?: readonly string[];
  readonly by?: readonly string[];
  readonly where?: readonly unknown[];
  readonly window?: string | { readonly kind?: string; readonly length?: unknown } | null;
  readonly text?: string;
}

/** A board with its tiles. */
export type Board = Omit<WireBoard, "tiles"> & { readonly tiles: readonly Tile[] };
