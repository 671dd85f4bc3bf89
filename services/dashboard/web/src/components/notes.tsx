/** What a page says when it has nothing else to show: refusals, emptiness, notes. */
import type { ComponentChildren } from "preact";
import type { Problem, ProblemPlace } from "../live/wire";
import { words } from "../messages.en";
import { copyText } from "./copy";
import { Excerpt } from "./excerpt";
import { Icon, type IconName } from "./icon";

interface RefusedProps {
  readonly problem: Problem;
  readonly retry?: () => void;
  /** Of something beside what one does: it is told without breaking in. */
  readonly aside?: boolean;
}

/** A refusal, in the server's words: what was required, what came, what to do. */
export function Refused({ problem, retry, aside = false }: RefusedProps) {
  return (
    <div class="note bad-b" role={aside ? "status" : "alert"} tabIndex={-1} data-testid="problem">
      <span class="bad">
        <Icon name="alert" />
      </span>
      <div class="grow">
        <b class="said">{problem.message}</b>
        <Excerpt place={saidIn(problem.message, problem.errors ?? [])} />
        <Places problem={problem} />
        <div class="row note-acts">
          {retry && (
            <button type="button" class="btn sm" onClick={retry}>
              {words.errors.retry}
            </button>
          )}
          <button
            type="button"
            class="btn sm quiet"
            onClick={() => copyText(JSON.stringify(problem, null, 2))}
          >
            {words.errors.copy}
          </button>
        </div>
      </div>
    </div>
  );
}

/** Returns the places that a refusal's message does not tell by itself: it tells the first. */
export function unsaidOf(
  message: string,
  places: readonly ProblemPlace[],
): readonly ProblemPlace[] {
  return places.filter((place) => !tells(message, place));
}

/** Returns the place that a refusal's message tells. */
export function saidIn(message: string, places: readonly ProblemPlace[]): ProblemPlace | undefined {
  return places.find((place) => tells(message, place));
}

const tells = (message: string, { pointer, required }: ProblemPlace): boolean =>
  message.startsWith(`${pointer || "definition"} must be ${required}`);

function Places({ problem }: { problem: Problem }) {
  const places = unsaidOf(problem.message, problem.errors ?? []);
  if (places.length === 0) return <p class="t2 mono s">{problem.code}</p>;
  return (
    <ul>
      {places.map((place) => (
        <li key={place.pointer} class="t2">
          {place.pointer && <code>{place.pointer}</code>} {words.errors.required(place)}
          <Excerpt place={place} />
        </li>
      ))}
    </ul>
  );
}

interface EmptyProps {
  readonly icon?: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** Nothing to show: why, and the next step. */
export function Empty({ icon = "nodata", title, children }: EmptyProps) {
  return (
    <div class="empty" data-testid="empty">
      <Icon name={icon} />
      <span class="b">{title}</span>
      {children}
    </div>
  );
}

interface NoteProps {
  readonly tone: "warn" | "bad" | "good";
  readonly icon: IconName;
  readonly children: ComponentChildren;
}

/** A remark above a page. */
export function Note({ tone, icon, children }: NoteProps) {
  return (
    <div class={`note ${tone}-b`} role="status">
      <span class={tone}>
        <Icon name={icon} />
      </span>
      <div class="grow">{children}</div>
    </div>
  );
}
