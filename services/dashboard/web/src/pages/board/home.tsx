/** `/`: the board that was looked at last, else the first one, else the first run. */
import { useEffect } from "preact/hooks";
import { useLoad } from "../../api/load";
import type { Board, Metric, Page } from "../../api/shapes";
import { useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { replacePath } from "../../lib/router";
import { may, session } from "../../lib/session";
import { to, toPut } from "../../lib/view";
import { words } from "../../messages.en";
import { lastBoard } from "./last";

export default function Home() {
  const ready = session.value?.signed_in ?? false;
  const boards = useLoad<Page<Board>>(ready ? "/boards" : null);
  const metrics = useLoad<Page<Metric>>(ready ? "/metrics" : null);
  useTitle(words.nav.boards);
  const items = boards.body?.items;
  const first = items?.find((board) => board.name === lastBoard()) ?? items?.[0];
  const bare = items?.length === 0 && metrics.body?.items.length === 0;
  useEffect(() => {
    if (first) replacePath(to(`/b/${first.name}`));
    else if (bare) replacePath(to("/live"));
  }, [first, bare]);
  const problem = boards.problem ?? metrics.problem;
  if (problem && problem.status !== 401) return <Refused problem={problem} retry={boards.reload} />;
  if (items?.length !== 0 || bare || !metrics.body) return <h1 class="sr">{words.nav.boards}</h1>;
  return (
    <>
      <h1>{words.nav.boards}</h1>
      <Empty icon="board" title={words.board.none}>
        <span class="s">{words.board.noneHint}</span>
        {may("define") ? (
          <a class="btn go" href={toPut("/metrics")} data-testid="first-board">
            {words.board.put}
          </a>
        ) : (
          <a class="btn" href={to("/metrics")}>
            {words.nav.metrics}
          </a>
        )}
      </Empty>
    </>
  );
}
