/** The words of the page Ledger. */
import { plural } from "./lib/plural";

export const ledgerWords = {
  title: "Ledger",
  sub: "what became of every event received",
  head: {
    minute: "received in",
    received: "received",
    counted: "counted",
    duplicate: "duplicate",
    quarantined: "quarantined",
    beyond_horizon: "beyond horizon",
    erased: "erased",
    difference: "difference",
  },
  nothing: "No minute can be compared yet",
  nothingWhy:
    "a minute is compared once it is over, and while the batch records that cover it whole are kept",
  balances: (minutes: number) => `Balances: ${minutes} ${plural(minutes, "minute")}`,
  broken: (minutes: number) =>
    `${minutes} ${plural(minutes, "minute")} ${plural(minutes, "does", "do")} not balance`,
  inFlight: (n: string) => `${n} in flight`,
  open: "in flight",
  unknown: "not kept",
  unknownWhy: "what was read in this minute is older than the batch records that are kept",
  none: "No event received yet",
  total: "sum",
  batches: (batches: string, events: string, ticks: string) =>
    `The newest ${batches} batches read ${events} events and ${ticks} clock ticks of Weir itself, each accounted for.`,
  batchesBroken: (n: string) => `${n} records of the newest batches are not accounted for`,
} as const;
