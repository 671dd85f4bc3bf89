/** The tile that shows what a metric's page shows. Pure. */
import type { MetricDetail } from "../../api/shapes";
import type { NewTile } from "../../lib/board-text";
import { lengthOf, lengthText } from "../../lib/time";
import type { Choice } from "./choice";

type Known = Pick<MetricDetail, "name" | "by" | "resolution_ms">;

/** The size that a tile has until somebody chooses another. */
export const USUAL_SIZE: Readonly<Record<NewTile["type"], NewTile["size"]>> = {
  chart: "L",
  number: "S",
  top: "M",
};

const NUMBER_WINDOW = "5m";

/** Returns the kinds of tile that a metric can have: a table needs something to list. */
export function kindsOf(metric: Known): readonly NewTile["type"][] {
  return metric.by.length > 0 ? ["chart", "number", "top"] : ["chart", "number"];
}

/** Returns a tile of a kind; without a title it has one made of what it shows. */
export function tileOf(
  metric: Known,
  chosen: Choice,
  { type, size, title }: Pick<NewTile, "type"> & Partial<NewTile>,
): NewTile {
  const by = groupsOf(metric, chosen, type);
  const window = windowOf(metric, chosen, type);
  const grouped = by.length > 0 ? ` by ${by.join(", ")}` : "";
  return {
    type,
    title: title?.trim() || `${metric.name} ${chosen.aggregate}${grouped}`,
    size: size ?? USUAL_SIZE[type],
    metric: metric.name,
    aggregate: chosen.aggregate,
    ...(by.length > 0 && { by }),
    ...(window !== null && { window: { kind: "sliding", length: window } }),
  };
}

/** A number is of all series together; a table lists at least the first dimension. */
function groupsOf(metric: Known, chosen: Choice, type: NewTile["type"]): readonly string[] {
  if (type === "number") return [];
  if (type === "top" && chosen.by.length === 0) return metric.by.slice(0, 1);
  return chosen.by;
}

/** A number without a window would be that of one step, whose length is nobody's choice. */
function windowOf(metric: Known, chosen: Choice, type: NewTile["type"]): string | null {
  if (type !== "number" || chosen.window !== null) return chosen.window;
  const usual = lengthOf(NUMBER_WINDOW) ?? 0;
  return metric.resolution_ms <= usual ? NUMBER_WINDOW : lengthText(metric.resolution_ms);
}
