/** How much would have been late by an allowed lateness, beside where it is written. */
import { useEffect, useRef, useState } from "preact/hooks";
import { post, problemOf } from "../api/client";
import type { LatenessTold, SourceLateness } from "../api/shapes";
import { DAY_HOURS, fewerHours, hoursOf, shareBeyond } from "../lib/lateness";
import { integer, NONE, percent } from "../lib/numbers";
import { session } from "../lib/session";
import { lengthText, lengthWords } from "../lib/time";
import type { Problem } from "../live/wire";
import { lateWords } from "../messages.late.en";
import { Refused } from "./notes";
import { VirtualTable } from "./virtual-table";

const PAUSE_MS = 250;
const AGAIN_MS = 60_000;
/** Too many at once: there is a turn as soon as one of them is answered. */
const BUSY = 429;
const BUSY_MS = 2_000;
const DAY_MS = 86_400_000;
const words = lateWords.allowed;

interface AllowedLatenessProps {
  /** The metric's definition; null: it cannot be used as it is, and what was told stays, dimmed. */
  readonly text: string | null;
  /** Takes the length that is suggested, as it is written; left out: it is not offered. */
  onPick?(length: string): void;
}

/** Tells it of a definition that is being written, a moment after each change. */
export function AllowedLateness({ text, onPick }: AllowedLatenessProps) {
  const { told, problem, old } = useLatenessOf(text);
  if (told === null && problem === null) return null;
  return (
    <section class="would-be-late" aria-label={words.title}>
      <h3>{words.title}</h3>
      {problem && <Refused problem={problem} aside />}
      {told && <LatenessSaid told={told} old={old} {...(onPick && { onPick })} />}
    </section>
  );
}

/** Asks; figures are old once they are of another text, or could not be asked for again. */
function useLatenessOf(text: string | null) {
  const [found, setFound] = useState<{ text: string; told: LatenessTold } | null>(null);
  // It stays until the next answer: told anew with each letter it would say nothing else.
  const [problem, setProblem] = useState<Problem | null>(null);
  const hours = useRef(DAY_HOURS);
  const ready = session.value?.signed_in ?? false;
  useEffect(() => {
    if (text === null || !ready) return;
    const abort = new AbortController();
    let timer = 0;
    const ask = () =>
      post<LatenessTold>("/lateness", { text, hours: hours.current }, abort.signal)
        .then(
          (told) => {
            setFound({ text, told });
            setProblem(null);
            return AGAIN_MS;
          },
          (error: unknown) => {
            const refused = problemOf(error);
            const fewer = fewerHours(hours.current, refused);
            if (fewer === null && !abort.signal.aborted) setProblem(refused);
            hours.current = fewer ?? hours.current;
            return fewer !== null ? 0 : refused.status === BUSY ? BUSY_MS : AGAIN_MS;
          },
        )
        .then((waitMs) => {
          if (!abort.signal.aborted) timer = window.setTimeout(ask, waitMs);
        });
    timer = window.setTimeout(ask, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, ready]);
  const isOther = found !== null && found.text !== text;
  const old = isOther ? words.ofBefore : problem && words.ofEarlier;
  return { told: found?.told ?? null, problem, old };
}

interface LatenessSaidProps extends Pick<AllowedLatenessProps, "onPick"> {
  readonly told: LatenessTold;
  /** Of what it is told, where that is not the definition at hand, or not now. */
  readonly old?: string | null;
}

/** The share that would have been late, of all and by source, and which length is suggested. */
export function LatenessSaid({ told, old = null, onPick }: LatenessSaidProps) {
  const { all, sources, untyped } = told;
  const allowedMs = told.allowed_ms ?? 0;
  const found = shareBeyond(all, allowedMs);
  const last = lateWords.last(hoursOf(told));
  return (
    <div
      class={old === null ? "lateness-said" : "lateness-said dimmed"}
      data-testid="lateness-said"
      data-old={old !== null}
      data-events={all.events}
      data-late={found?.events}
    >
      <p class="t2 s">
        {old && <b>{old} </b>}
        {found === null
          ? words.none(last)
          : words.would(lengthWords(allowedMs), percent(found.share), integer(all.events), last)}
        {found && found.than_ms !== allowedMs && words.between(lengthWords(found.than_ms))}
      </p>
      {found && (
        <p class="row wrap t3 s" data-testid="lateness-suggested">
          {suggestionOf(told)}
          {onPick && all.suggested_ms !== null && all.suggested_ms !== allowedMs && (
            <Pick lengthMs={all.suggested_ms} old={old !== null} onPick={onPick} />
          )}
        </p>
      )}
      {untyped > 0 && <p class="t3 s">{words.untyped(integer(untyped))}</p>}
      {sources.length > 0 && (
        <BySource
          sources={sources}
          allowedMs={found?.than_ms ?? 0}
          longest={lengthWords(told.longest_ms)}
        />
      )}
    </div>
  );
}

/** Returns which length is suggested, in words, or why none is. */
export function suggestionOf({ all, longest_ms }: Pick<LatenessTold, "all" | "longest_ms">) {
  if (all.suggested_ms !== null) return words.suggested(lengthWords(all.suggested_ms));
  const none = words.unsuggested(lengthWords(longest_ms));
  return longest_ms < DAY_MS ? none + words.bounded : none;
}

interface PickProps {
  readonly lengthMs: number;
  readonly old: boolean;
  onPick(length: string): void;
}

function Pick({ lengthMs, old, onPick }: PickProps) {
  return (
    <button
      type="button"
      class="btn sm"
      data-testid="lateness-use"
      disabled={old}
      onClick={() => onPick(lengthText(lengthMs))}
    >
      {words.use(lengthWords(lengthMs))}
    </button>
  );
}

interface BySourceProps {
  readonly sources: readonly SourceLateness[];
  readonly allowedMs: number;
  readonly longest: string;
}

function BySource({ sources, allowedMs, longest }: BySourceProps) {
  const { head } = words;
  return (
    <VirtualTable
      label={words.by}
      rows={sources}
      head={
        <tr>
          <th>{head.source}</th>
          <th class="num">{head.events}</th>
          <th class="num" title={words.lateWhy}>
            {head.late}
          </th>
          <th class="num" title={words.suggestedWhy}>
            {head.suggested}
          </th>
        </tr>
      }
      row={(one) => (
        <Row key={one.source ?? ""} one={one} allowedMs={allowedMs} longest={longest} />
      )}
    />
  );
}

interface RowProps {
  readonly one: SourceLateness;
  readonly allowedMs: number;
  readonly longest: string;
}

function Row({ one, allowedMs, longest }: RowProps) {
  const found = shareBeyond(one, allowedMs);
  return (
    <tr data-testid="lateness-of" data-source={one.source ?? ""}>
      <td class="mono s">{one.source}</td>
      <td class="num">{integer(one.events)}</td>
      <td class="num">{found ? percent(found.share) : NONE}</td>
      <td class="num">
        {one.suggested_ms === null ? words.longer(longest) : lengthWords(one.suggested_ms)}
      </td>
    </tr>
  );
}
