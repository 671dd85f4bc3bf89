package dev.weir.bench;

import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.datasketches.memory.Memory;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.functions.AggregateFunction;

/** Percentiles by KLL, with the k that Weir takes for the 95th; the result is the sketch's bytes. */
@FunctionHint(
    input = @DataTypeHint("DOUBLE"),
    accumulator =
        @DataTypeHint(
            value = "RAW",
            bridgedTo = KllDoublesSketch.class,
            rawSerializer = Kll.Serializer.class),
    output = @DataTypeHint("BYTES"))
public class Kll extends AggregateFunction<byte[], KllDoublesSketch> {
  public static final int K = 200;

  @Override
  public KllDoublesSketch createAccumulator() {
    return KllDoublesSketch.newHeapInstance(K);
  }

  public void accumulate(KllDoublesSketch sketch, Double value) {
    if (value != null) {
      sketch.update(value);
    }
  }

  public void merge(KllDoublesSketch sketch, Iterable<KllDoublesSketch> others) {
    for (KllDoublesSketch other : others) {
      sketch.merge(other);
    }
  }

  @Override
  public byte[] getValue(KllDoublesSketch sketch) {
    return sketch.toByteArray();
  }

  /** How a sketch crosses from one task to another. */
  public static class Serializer extends SketchSerializer<KllDoublesSketch> {
    @Override
    public KllDoublesSketch createInstance() {
      return KllDoublesSketch.newHeapInstance(K);
    }

    @Override
    protected byte[] write(KllDoublesSketch sketch) {
      return sketch.toByteArray();
    }

    @Override
    protected KllDoublesSketch read(byte[] bytes) {
      return KllDoublesSketch.heapify(Memory.wrap(bytes));
    }

    @Override
    public TypeSerializerSnapshot<KllDoublesSketch> snapshotConfiguration() {
      return new Snapshot();
    }

    /** The serializer has no settings. */
    public static class Snapshot extends SimpleTypeSerializerSnapshot<KllDoublesSketch> {
      public Snapshot() {
        super(Serializer::new);
      }
    }
  }
}
