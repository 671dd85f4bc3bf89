package dev.weir.bench;

import java.util.Locale;
import java.util.StringJoiner;
import java.util.concurrent.atomic.LongAdder;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.datasketches.memory.Memory;
import org.apache.flink.table.data.RowData;

/**
 * What the panes of one metric add up to, by which the benchmark checks a run.
 *
 * <p>In a timed run only the counts are added; the rest is for the check run.
 */
final class Totals {
  static volatile Totals[] all = {};

  private final boolean checked;
  private final LongAdder count = new LongAdder();
  private double sum;
  private double least = Double.POSITIVE_INFINITY;
  private double most = Double.NEGATIVE_INFINITY;
  private Union distinct;
  private KllDoublesSketch values;

  Totals(boolean checked) {
    this.checked = checked;
  }

  static void begin(int metrics, boolean checked) {
    Totals[] fresh = new Totals[metrics];
    for (int i = 0; i < metrics; i++) {
      fresh[i] = new Totals(checked);
    }
    all = fresh;
  }

  /** Takes a row of count, sum, min, max and, if there are any, both sketches. */
  void take(RowData row, boolean sketches) {
    count.add(row.getLong(0));
    if (checked) {
      merge(row, sketches);
    }
  }

  private synchronized void merge(RowData row, boolean sketches) {
    sum += row.getDouble(1);
    least = Math.min(least, row.getDouble(2));
    most = Math.max(most, row.getDouble(3));
    if (!sketches) {
      return;
    }
    if (distinct == null) {
      distinct = new Union(Hll.LG_K);
      values = KllDoublesSketch.newHeapInstance(Kll.K);
    }
    distinct.update(HllSketch.heapify(Memory.wrap(row.getBinary(4))));
    values.merge(KllDoublesSketch.heapify(Memory.wrap(row.getBinary(5))));
  }

  private synchronized String text() {
    String found = String.format(Locale.ROOT, "{\"count\": %d", count.sum());
    if (checked) {
      found += String.format(Locale.ROOT, ", \"sum\": %.17g, \"min\": %.17g", sum, least);
      found += String.format(Locale.ROOT, ", \"max\": %.17g", most);
      if (distinct != null) {
        double p95 = values.getQuantile(0.95);
        found += String.format(Locale.ROOT, ", \"distinct\": %.17g", distinct.getEstimate());
        found += String.format(Locale.ROOT, ", \"p95\": %.17g", p95);
      }
    }
    return found + "}";
  }

  static String json() {
    StringJoiner texts = new StringJoiner(", ", "[", "]");
    for (Totals totals : all) {
      texts.add(totals.text());
    }
    return texts.toString();
  }
}
