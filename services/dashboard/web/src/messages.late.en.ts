/** The words of what late events changed, how late sources are, and where a metric's events went. */

import { plural } from "./lib/plural";

export const lateWords = {
  tab: "Late events",
  title: "What late events changed",
  sub: (length: string) => `after panes were final: ${length} after their end`,
  none: "No late event has changed a final pane.",
  noneHint: "Events that come later than the metric allows are counted, and are listed here.",
  head: {
    pane: "pane",
    series: "series",
    events: "events",
    late: "late by",
    texts: "top",
    sources: "sources",
  },
  others: "and others",
  all: "all",
  other: "other",
  gone: "other",
  unknown: "not known",
  possibly: (sources: string) => `possibly ${sources}`,
  exactly: "who sent these events",
  upTo: "who sent late events of these types into this time, whether or not they matched",
  lateWhy: (received: string, final: string) => `came until ${received}; final at ${final}`,
  between: (value: string, low: string, high: string) => `${value}, between ${low} and ${high}`,
  ends: (low: string, high: string) => `${low} – ${high}`,
  last: (hours: number) =>
    hours === 24 ? "the last day" : hours === 1 ? "the last hour" : `the last ${hours} hours`,
  allowed: {
    title: "What would have been late",
    would: (length: string, share: string, events: string, last: string) =>
      `With ${length} at most ${share} of ${events} events of ${last} would have been late.`,
    between: (length: string) => ` That many came more than ${length} after they happened.`,
    none: (last: string) => `No event that this counts came in ${last}.`,
    ofBefore: "Of the text before the last change:",
    ofEarlier: "As it was told last:",
    suggested: (length: string) =>
      `Less than 0.1 % would have been with ${length}, the shortest of the usual lengths.`,
    unsuggested: (longest: string) =>
      `With ${longest}, the longest of the usual lengths that may be allowed, it would have been 0.1 % or more.`,
    bounded:
      " Its panes must be kept until they are final: with a longer keep, in the text, more may be allowed.",
    use: (length: string) => `Use ${length}`,
    untyped: (events: string) =>
      `Not among these: ${events} of the events of these sources, of whose type nothing is kept.`,
    head: {
      source: "source",
      events: "events",
      late: "late, at most",
      suggested: "< 0.1 % with",
    },
    longer: (longest: string) => `> ${longest}`,
    by: "How late the events of each source are",
    lateWhy: "the most that would have been late",
    suggestedWhy: "the shortest usual length with which less than 0.1 % would have been late",
  },
  sources: {
    title: "How late events are",
    sub: (last: string) => `received less event time, ${last}`,
    earlier: "As it was told last.",
    head: {
      source: "source",
      events: "events",
      p50: "half within",
      p99: "99 % within",
      max: "all within",
    },
    later: (length: string) => `> ${length}`,
    all: "all sources",
    over: "> 100 d",
    none: (last: string) => `Nothing was counted in ${last}.`,
    why: "the most that would have been late with that allowed lateness",
  },
  ledger: {
    tab: "Ledger",
    title: "What became of every event",
    sub: "events counted in each received minute, as this metric used them",
    head: {
      minute: "received",
      counted: "counted",
      used: "used",
      not_matched: "not matched",
      value_quarantined: "value refused",
      pane_not_kept: "too old",
    },
    before: "not known: this version was not counted for all of that minute",
    none: "No event was counted in the last hour.",
    events: (n: number) => plural(n, "event"),
    leftOut: (missing: string, copies: string, version: number) =>
      `Up to ${missing} more events whose value version ${version} could not use are not kept as copies; ${copies} are. Each minute of this ledger counts all of its own.`,
    leftOutDo:
      "The metric’s next version counts all of them again from the log, as far as that reaches back; a replay takes copies only.",
    leftOutIn: (partition: number | null, missing: string) =>
      partition === null ? `elsewhere ${missing}` : `partition ${partition}: ${missing}`,
    leftOutAtLeast: "Older copies were not read, so there may be more.",
  },
  status: {
    holding: "What holds the numbers back",
    nothing: "Nothing: numbers are at the present.",
    lag: (records: string, age: string) => `${records} records wait; numbers are ${age} old.`,
    log: (left: string, kept: string | null) =>
      `The log holds what is not counted for ${left} more; it keeps an event ${kept === null ? "for ever" : `for ${kept}`}.`,
    logUnknown: "For how long the log holds what is not counted is not known yet.",
    dedupGap: (before: number, now: number, left: string) =>
      `The log has ${now} partitions and had ${before}: for ${left} more, an event that is sent again may count twice.`,
    forEver: "The log deletes nothing that is not counted.",
  },
} as const;
