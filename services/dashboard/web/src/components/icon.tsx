/** Icons: 16 px, 1.5 px strokes, drawn for Weir. They never stand for a state alone. */

const PATHS = {
  alert: "M8 1.8 14.6 13.6H1.4z M8 6.2v3.4 M8 11.6v.1",
  ok: "M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4 M5.4 8.2l1.8 1.8 3.4-3.8",
  nodata: "M5.6 8h4.8 M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4",
  stale: "M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4 M8 4.8V8l2 1.6",
  off: "M2 2l12 12 M4.6 6.2A7 7 0 0 1 8 5.4c1.9 0 3.6.7 4.8 1.9 M8 11.6v.1 M6.2 9.4a3 3 0 0 1 3.4-.2",
  search: "M7 2.6a4.4 4.4 0 1 0 0 8.8a4.4 4.4 0 1 0 0-8.8 M10.4 10.4l3.4 3.4",
  down: "M4.6 6.4l3.4 3.4 3.4-3.4",
  pause: "M5.6 3.6v8.8 M10.4 3.6v8.8",
  play: "M5.2 3.4v9.2l7-4.6z",
  plus: "M8 3v10 M3 8h10",
  x: "M4.6 4.6l6.8 6.8 M11.4 4.6l-6.8 6.8",
  check: "M3.2 8.6l3.2 3.2 6.4-7.2",
  copy: "M5.6 5.6h8v8h-8z M3.6 10.4H2.4v-8h8v1.2",
  replay: "M3 8a5 5 0 1 0 1.6-3.6L3 6 M3 2.8V6h3.2",
  board: "M2.4 2.4h4.8v6H2.4z M8.8 2.4h4.8v3.4H8.8z M8.8 7.4h4.8v6.2H8.8z M2.4 10h4.8v3.6H2.4z",
  metric: "M2.4 13.6V2.4 M2.4 13.6h11.2 M4.8 10.4l2.8-3.2 2.4 1.8 3.4-4.4",
  flow: "M1.8 8h3 M11.2 8h3 M4.8 5.6h6.4v4.8H4.8z",
  live: "M8 7.2a.8.8 0 1 0 0 1.6a.8.8 0 1 0 0-1.6 M4.6 11.4a4.8 4.8 0 0 1 0-6.8 M11.4 4.6a4.8 4.8 0 0 1 0 6.8",
  more: "M3.4 8h.1 M8 8h.1 M12.6 8h.1",
  sun: "M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6 M8 2.2v11.6 M8 5l4.6-1 M8 8h5.8 M8 11l4.6 1",
  gear: "M8 6a2 2 0 1 0 0 4a2 2 0 1 0 0-4 M8 1.8v1.8 M8 12.4v1.8 M1.8 8h1.8 M12.4 8h1.8 M3.6 3.6l1.3 1.3 M11.1 11.1l1.3 1.3 M12.4 3.6l-1.3 1.3 M4.9 11.1l-1.3 1.3",
  table: "M2.4 3.4h11.2v9.2H2.4z M2.4 6.6h11.2 M6.4 6.6v6",
  firing: "M8 4.6v4 M8 11v.2",
  pending: "M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4",
  recovering: "M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4 M8 5v6 M5.6 8.8L8 11.2l2.4-2.4",
  fix: "",
  bell: "M3.6 11.4c.9-1 1-2 1-4a3.4 3.4 0 0 1 6.8 0c0 2 .1 3 1 4z M6.8 13.6a1.3 1.3 0 0 0 2.4 0",
} as const;

/** What of an icon is filled, under its lines. */
const FILLED: Readonly<Record<string, string>> = {
  firing: "M5.2 1h5.6L15 5.2v5.6L10.8 15H5.2L1 10.8V5.2z",
  pending: "M8 3.6a4.4 4.4 0 0 1 0 8.8z",
  fix: "M8 2.6L13.4 8 8 13.4 2.6 8z",
};

export type IconName = keyof typeof PATHS;

/** Draws an icon; words beside it say what it means. */
export function Icon({ name, small = false }: { name: IconName; small?: boolean }) {
  return (
    <svg class={small ? "i sm" : "i"} viewBox="0 0 16 16" aria-hidden="true">
      {FILLED[name] && <path class="solid" d={FILLED[name]} />}
      <path class={name === "firing" ? "cut" : undefined} d={PATHS[name]} />
    </svg>
  );
}

/** The mark of Weir: water over steps. */
export function Mark() {
  return (
    <svg class="mark" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <path d="M2 5.5h7.2c2 0 1.8 4.5 3.8 4.5h5" />
      <path d="M2 10h4.2c2 0 1.8 4.5 3.8 4.5h8" opacity=".6" />
      <path d="M2 14.5h2" opacity=".35" />
    </svg>
  );
}
