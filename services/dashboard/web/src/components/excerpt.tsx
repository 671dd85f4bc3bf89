/** Where an expression is wrong: its line, and a caret below the place. */
import { narrowed } from "../lib/excerpt";
import type { ProblemPlace } from "../live/wire";

interface ExcerptProps {
  readonly place: ProblemPlace | undefined;
}

/** Nothing for what has no place. The words beside it tell the character, so it is for eyes alone. */
export function Excerpt({ place }: ExcerptProps) {
  if (!place?.excerpt) return null;
  return (
    <code class="excerpt" aria-hidden="true" data-testid="excerpt">
      {narrowed(place.excerpt)}
    </code>
  );
}
