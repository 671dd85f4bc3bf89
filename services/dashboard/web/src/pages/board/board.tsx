/** A board: tiles, charts, tables and notes, as its definition orders them. */
import { useEffect } from "preact/hooks";
import { useLoad } from "../../api/load";
import type { Board, Metric, Page, Tile } from "../../api/shapes";
import { ParamNotes, TimeControls } from "../../components/controls";
import { type PageProps, useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { navigate } from "../../lib/router";
import { may, session } from "../../lib/session";
import { to, toPut } from "../../lib/view";
import { useChanges } from "../../live/use";
import { words } from "../../messages.en";
import { ChartTile } from "./chart-tile";
import { rememberBoard } from "./last";
import { NumberTile } from "./number-tile";
import { TopTile } from "./top-tile";

export default function BoardPage({ names }: PageProps) {
  const name = names.get("name") ?? "";
  const ready = session.value?.signed_in ?? false;
  const boards = useLoad<Page<Board>>(ready ? "/boards" : null);
  const metrics = useLoad<Page<Metric>>(ready ? "/metrics" : null);
  // How long panes are, and so a tile's step, is another matter after an edit.
  useChanges(metrics.reload);
  const board = boards.body?.items.find((one) => one.name === name);
  useTitle(board?.title || name);
  useEffect(() => {
    if (board) rememberBoard(board.name);
  }, [board]);
  if (boards.problem && !boards.body)
    return <Refused problem={boards.problem} retry={boards.reload} />;
  if (boards.body && !board) return <Gone />;
  return (
    <>
      <div class="bar">
        <h1>{board?.title || name}</h1>
        <BoardPicker boards={boards.body?.items ?? []} name={name} />
        <span class="sub hide-s">{board && words.board.sub(board.tiles.length)}</span>
        <span class="grow" />
        <TimeControls />
      </div>
      <ParamNotes />
      <div class="grid" data-testid="board">
        {board?.tiles.map((tile, at) => (
          // a tile is its place on the board
          <AnyTile key={at} tile={tile} metrics={metrics.body?.items ?? null} />
        ))}
      </div>
      {board?.tiles.length === 0 && (
        <Empty icon="board" title={words.board.emptyTitle}>
          {may("define") && (
            <a class="btn go" href={toPut("/metrics")}>
              {words.board.put}
            </a>
          )}
          <a class="btn" href={to(`/d/board/${name}`)}>
            {words.nav.definitions}
          </a>
        </Empty>
      )}
    </>
  );
}

function AnyTile({ tile, metrics }: { tile: Tile; metrics: readonly Metric[] | null }) {
  switch (tile.type) {
    case "number":
      return <NumberTile tile={tile} metrics={metrics} />;
    case "chart":
      return <ChartTile tile={tile} />;
    case "top":
      return <TopTile tile={tile} metrics={metrics} />;
    case "note":
      return (
        <section class={`panel size-${tile.size ?? "M"}`}>
          {tile.title && (
            <header>
              <h2>{tile.title}</h2>
            </header>
          )}
          <p class="body prose">{tile.text}</p>
        </section>
      );
  }
}

function BoardPicker({ boards, name }: { boards: readonly Board[]; name: string }) {
  if (boards.length < 2) return null;
  return (
    <select
      class="sel"
      aria-label={words.board.others}
      value={name}
      onChange={(change) => navigate(to(`/b/${change.currentTarget.value}`))}
    >
      {boards.map((board) => (
        <option key={board.name} value={board.name}>
          {board.title || board.name}
        </option>
      ))}
    </select>
  );
}

function Gone() {
  return (
    <>
      <h1 class="sr">{words.errors.notFound}</h1>
      <Empty icon="search" title={words.errors.notFound}>
        <span class="s">{words.errors.notFoundHint}</span>
        <a class="btn" href={to("/")}>
          {words.nav.boards}
        </a>
      </Empty>
    </>
  );
}
