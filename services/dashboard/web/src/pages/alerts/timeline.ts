/** What happened to an alert, as a list of sentences. Pure. */
import type { AlertDetail, Happened } from "../../api/shapes";
import type { IconName } from "../../components/icon";
import { estimateText } from "../../lib/ends";
import { limitText, type SideName, sideOf } from "../../lib/limit-words";
import { NONE } from "../../lib/numbers";
import { nounOf } from "../../lib/signals";
import { alertWords } from "../../messages.alerts.en";
import { actWords } from "../../messages.channels.en";

const said = alertWords.happened;
const acts = actWords.happened;

/** One line: when, its sign, what; of a delivery to whom and with which answer. */
export interface Entry {
  readonly atMs: number;
  readonly icon: IconName;
  readonly tone: string;
  readonly text: string;
  readonly channel: string | null;
  readonly answer: string;
  readonly provisional: boolean;
}

const SIGNS: ReadonlyMap<string, readonly [IconName, string]> = new Map<
  string,
  readonly [IconName, string]
>([
  ["firing", ["firing", "bad"]],
  ["relapsed", ["firing", "bad"]],
  ["confirmed", ["check", "good"]],
  ["amended", ["fix", "fix"]],
  ["withdrawn", ["fix", "fix"]],
  ["recovering", ["recovering", "warn"]],
  ["resolved", ["ok", "good"]],
  ["ended", ["x", "t3"]],
  ["no_data", ["nodata", "t3"]],
  ["data", ["check", "t2"]],
  ["delivered", ["bell", "t3"]],
  ["refused", ["alert", "bad"]],
  ["given_up", ["alert", "bad"]],
  ["failed", ["alert", "warn"]],
  ["silenced", ["pause", "t3"]],
  ["acknowledged", ["check", "t2"]],
  ["given_back", ["replay", "t3"]],
]);

type Told = Pick<
  AlertDetail,
  "happened" | "left_out" | "metric" | "aggregate" | "unit" | "limit" | "verdict" | "reason"
>;

/** Returns what happened, oldest first; what is too much to be kept has one line. */
export function timelineOf(alert: Told): readonly Entry[] {
  let before: Happened | null = null;
  const confirmedAt = alert.happened.findIndex((one) => one.kind === "confirmed");
  const wasProvisional = confirmedAt >= 0 || alert.verdict === "provisional";
  const entries = alert.happened.map((one, at): Entry => {
    // What stood between the first and the second is not known.
    if (at === 1 && alert.left_out) before = null;
    const [icon, tone] = SIGNS.get(one.kind) ?? ["more", "t3"];
    const open = confirmedAt < 0 || at < confirmedAt;
    const provisional = one.kind === "firing" && wasProvisional && open;
    const text = textOf(alert, one, before);
    if (one.value !== null && one.value !== undefined) before = one;
    return {
      atMs: one.at_ms,
      icon,
      tone,
      text,
      channel: one.channel ?? null,
      answer: one.channel ? answerOf(one) : "",
      provisional,
    };
  });
  if (alert.left_out) entries.splice(1, 0, leftOut(alert.left_out, entries[1]?.atMs ?? 0));
  return entries;
}

const leftOut = (n: number, atMs: number): Entry => ({
  atMs,
  icon: "more",
  tone: "t3",
  text: said.leftOut(n),
  channel: null,
  answer: "",
  provisional: false,
});

function textOf(alert: Told, one: Happened, before: Happened | null): string {
  const value = estimateText(one, alert);
  const told = value === NONE ? said.silent : `${nounOf(alert)} ${value}`;
  switch (one.kind) {
    case "firing":
      return said.firing(crossed(alert, one, told));
    case "amended":
      return before === null ? said.amendedTo(told) : said.amended(was(alert, before), value);
    case "recovering":
      return said.recovering(told);
    case "relapsed":
      return said.relapsed(told);
    case "resolved":
      return said.resolved(told);
    case "ended":
      return said.ended(alert.reason ?? "");
    case "delivered":
      return said.sent;
    case "refused":
      return said.refused;
    case "given_up":
      return said.givenUp;
    case "failed":
      return acts.failed;
    case "silenced":
      return acts.silenced(one.note ?? "");
    case "acknowledged":
      return acts.acknowledged(one.by ?? "", one.note ?? "");
    case "given_back":
      return acts.given_back(one.by ?? "");
    case "confirmed":
    case "withdrawn":
    case "no_data":
    case "data":
      return said[one.kind];
    default:
      return said.other(one.kind);
  }
}

const was = (alert: Told, before: Happened) => `${nounOf(alert)} ${estimateText(before, alert)}`;

function crossed(alert: Told, one: Happened, told: string): string {
  const side: SideName | null = sideOf({ limit: alert.limit, value: one.value ?? null });
  if (side === null) return told;
  return `${told} ${alertWords.signs[side]} ${limitText(alert.limit, alert.unit, alert.metric)}`;
}

function answerOf(one: Happened): string {
  const tries = one.tries ?? 1;
  const answer = one.why || said.answered(one.status ?? null);
  return tries > 1 ? `${answer} ${said.tries(tries)}` : answer;
}
