/** What the signals of Weir itself say, on the pages of alerts and rules. */

export const signalWords = {
  what: "What it watches",
  explained: {
    "weir.stalled": "for how long the counted time has stood still",
    "weir.lag": "how far the numbers are behind the clock",
    "weir.ledger":
      "events that were received and are in no account, or the other way round, in the last 15 minutes",
    "weir.quarantine": "events that could not be used, of all in the last ten minutes",
    "weir.memory": "memory that Redis uses, of what it may use",
    "weir.log":
      "how much has passed of the time until events that are not counted are deleted from the log",
    "weir.quota": "what tenants may send together, of what can be counted in the same time",
    "weir.channel": "since when a channel has delivered nothing although it was tried",
    "weir.rules": "rules that cannot be evaluated",
  } as Readonly<Record<string, string>>,
} as const;
