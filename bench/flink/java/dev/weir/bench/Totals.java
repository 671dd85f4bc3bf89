package dev.weir.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import java.util.concurrent.atomic.LongAdder;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.datasketches.memory.Memory;
import org.apache.flink.table.data.RowData;

/**
 * What the panes of one metric add up to, by which the benchmark checks every run.
 *
 * <p>While the job runs the counts are added and the rest of each row is kept; it is merged when
 * the job has ended, and its time with it.
 */
final class Totals {
  static volatile Totals[] all = {};

  private final LongAdder count = new LongAdder();
  private final List<Pane> panes = new ArrayList<>();

  private record Pane(double sum, double least, double most, byte[] distinct, byte[] values) {}

  static void begin(int metrics) {
    Totals[] fresh = new Totals[metrics];
    for (int i = 0; i < metrics; i++) {
      fresh[i] = new Totals();
    }
    all = fresh;
  }

  /** Takes a row of count, sum, min, max and, if there are any, both sketches. */
  void take(RowData row, boolean sketches) {
    count.add(row.getLong(0));
    byte[] distinct = sketches ? row.getBinary(4) : null;
    byte[] values = sketches ? row.getBinary(5) : null;
    Pane pane = new Pane(row.getDouble(1), row.getDouble(2), row.getDouble(3), distinct, values);
    synchronized (panes) {
      panes.add(pane);
    }
  }

  private String text() {
    double sum = 0;
    double least = Double.POSITIVE_INFINITY;
    double most = Double.NEGATIVE_INFINITY;
    Union distinct = new Union(Hll.LG_K);
    KllDoublesSketch values = KllDoublesSketch.newHeapInstance(Kll.K);
    synchronized (panes) {
      for (Pane pane : panes) {
        sum += pane.sum;
        least = Math.min(least, pane.least);
        most = Math.max(most, pane.most);
        if (pane.distinct != null) {
          distinct.update(HllSketch.heapify(Memory.wrap(pane.distinct)));
          values.merge(KllDoublesSketch.heapify(Memory.wrap(pane.values)));
        }
      }
    }
    String found = String.format(Locale.ROOT, "{\"count\": %d", count.sum());
    found += String.format(Locale.ROOT, ", \"sum\": %.17g, \"min\": %.17g", sum, least);
    found += String.format(Locale.ROOT, ", \"max\": %.17g", most);
    if (!values.isEmpty()) {
      double p95 = values.getQuantile(0.95);
      found += String.format(Locale.ROOT, ", \"distinct\": %.17g", distinct.getEstimate());
      found += String.format(Locale.ROOT, ", \"p95\": %.17g", p95);
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
