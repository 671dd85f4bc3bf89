package dev.weir.bench;

import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.memory.Memory;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.functions.AggregateFunction;

/**
 * A distinct count by HLL, of the same size and type as Spark's; the result is the sketch's bytes.
 *
 * <p>It takes Flink's own strings: no text is decoded for an update.
 */
@FunctionHint(
    input = @DataTypeHint(value = "STRING", bridgedTo = StringData.class),
    accumulator =
        @DataTypeHint(
            value = "RAW",
            bridgedTo = Hll.Distinct.class,
            rawSerializer = Hll.Serializer.class),
    output = @DataTypeHint("BYTES"))
public class Hll extends AggregateFunction<byte[], Hll.Distinct> {
  public static final int LG_K = 12;

  /** A sketch that a union may replace. */
  public static class Distinct {
    HllSketch sketch = new HllSketch(LG_K, TgtHllType.HLL_8);
  }

  @Override
  public Distinct createAccumulator() {
    return new Distinct();
  }

  public void accumulate(Distinct distinct, StringData text) {
    if (text != null) {
      distinct.sketch.update(text.toBytes());
    }
  }

  public void merge(Distinct distinct, Iterable<Distinct> others) {
    for (Distinct other : others) {
      if (distinct.sketch.isEmpty()) {
        distinct.sketch = other.sketch;
      } else {
        Union union = new Union(LG_K);
        union.update(distinct.sketch);
        union.update(other.sketch);
        distinct.sketch = union.getResult(TgtHllType.HLL_8);
      }
    }
  }

  @Override
  public byte[] getValue(Distinct distinct) {
    return distinct.sketch.toCompactByteArray();
  }

  /** How a sketch crosses from one task to another. */
  public static class Serializer extends SketchSerializer<Distinct> {
    @Override
    public Distinct createInstance() {
      return new Distinct();
    }

    @Override
    protected byte[] write(Distinct distinct) {
      return distinct.sketch.toCompactByteArray();
    }

    @Override
    protected Distinct read(byte[] bytes) {
      Distinct distinct = new Distinct();
      distinct.sketch = HllSketch.heapify(Memory.wrap(bytes));
      return distinct;
    }

    @Override
    public TypeSerializerSnapshot<Distinct> snapshotConfiguration() {
      return new Snapshot();
    }

    /** The serializer has no settings. */
    public static class Snapshot extends SimpleTypeSerializerSnapshot<Distinct> {
      public Snapshot() {
        super(Serializer::new);
      }
    }
  }
}
