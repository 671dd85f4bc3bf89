/** How much would have been late by an allowed lateness, beside where it is written. */
import { useEffect, useState } from "preact/hooks";
import { post } from "../api/client";
import type { LatenessTold, SourceLateness } from "../api/shapes";
import { shareBeyond } from "../lib/lateness";
import { integer, NONE, percent } from "../lib/numbers";
import { lengthText, lengthWords } from "../lib/time";
import { lateWords } from "../messages.late.en";
import { VirtualTable } from "./virtual-table";

const PAUSE_MS = 250;
const AGAIN_MS = 60_000;
const words = lateWords.allowed;

interface AllowedLatenessProps {
  /** The metric's definition; null: it cannot be used as it is, and what was told stays. */
  readonly text: string | null;
  /** Takes the length that is suggested, as it is written; left out: it is not offered. */
  onPick?(length: string): void;
}

/** Tells it of a definition that is being written, a moment after each change. */
export function AllowedLateness({ text, onPick }: AllowedLatenessProps) {
  const [told, setTold] = useState<LatenessTold | null>(null);
  useEffect(() => {
    if (text === null) return;
    const abort = new AbortController();
    let timer = 0;
    const ask = () =>
      post<LatenessTold>("/lateness", { text }, abort.signal)
        .then(setTold, () => undefined)
        .finally(() => {
          if (!abort.signal.aborted) timer = window.setTimeout(ask, AGAIN_MS);
        });
    timer = window.setTimeout(ask, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  if (told === null) return null;
  return (
    <section class="would-be-late" aria-label={words.title}>
      <h3>{words.title}</h3>
      <LatenessSaid told={told} {...(onPick && { onPick })} />
    </section>
  );
}

interface LatenessSaidProps extends Pick<AllowedLatenessProps, "onPick"> {
  readonly told: LatenessTold;
}

/** The share that would have been late, of all and by source, and which length is suggested. */
export function LatenessSaid({ told, onPick }: LatenessSaidProps) {
  const { all, sources, untyped } = told;
  const allowedMs = told.allowed_ms ?? 0;
  const found = shareBeyond(all, allowedMs);
  return (
    <div
      class="lateness-said"
      data-testid="lateness-said"
      data-events={all.events}
      data-late={found?.events}
    >
      <p class="t2 s">
        {found === null
          ? words.none
          : words.would(lengthWords(allowedMs), percent(found.share), integer(all.events))}
        {found && found.than_ms !== allowedMs && words.between(lengthWords(found.than_ms))}
      </p>
      {found && (
        <p class="row wrap t3 s" data-testid="lateness-suggested">
          {all.suggested_ms === null
            ? words.unsuggested
            : words.suggested(lengthWords(all.suggested_ms))}
          {onPick && all.suggested_ms !== null && all.suggested_ms !== allowedMs && (
            <Pick lengthMs={all.suggested_ms} onPick={onPick} />
          )}
        </p>
      )}
      {untyped > 0 && <p class="t3 s">{words.untyped(integer(untyped))}</p>}
      {sources.length > 0 && <BySource sources={sources} allowedMs={found?.than_ms ?? 0} />}
    </div>
  );
}

function Pick({ lengthMs, onPick }: { lengthMs: number; onPick(length: string): void }) {
  return (
    <button
      type="button"
      class="btn sm"
      data-testid="lateness-use"
      onClick={() => onPick(lengthText(lengthMs))}
    >
      {words.use(lengthWords(lengthMs))}
    </button>
  );
}

interface BySourceProps {
  readonly sources: readonly SourceLateness[];
  readonly allowedMs: number;
}

function BySource({ sources, allowedMs }: BySourceProps) {
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
      row={(one) => <Row key={one.source ?? ""} one={one} allowedMs={allowedMs} />}
    />
  );
}

function Row({ one, allowedMs }: { one: SourceLateness; allowedMs: number }) {
  const found = shareBeyond(one, allowedMs);
  return (
    <tr data-testid="lateness-of" data-source={one.source ?? ""}>
      <td class="mono s">{one.source}</td>
      <td class="num">{integer(one.events)}</td>
      <td class="num">{found ? percent(found.share) : NONE}</td>
      <td class="num">
        {one.suggested_ms === null ? words.longer : lengthWords(one.suggested_ms)}
      </td>
    </tr>
  );
}
