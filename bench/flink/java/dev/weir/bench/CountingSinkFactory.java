package dev.weir.bench;

import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;

/** A black hole that adds up the counts that fall into it, and keeps the rows for the check. */
public class CountingSinkFactory implements DynamicTableSinkFactory {
  private static final ConfigOption<Integer> METRIC =
      ConfigOptions.key("metric").intType().noDefaultValue();
  private static final ConfigOption<Boolean> SKETCHES =
      ConfigOptions.key("sketches").booleanType().noDefaultValue();

  @Override
  public String factoryIdentifier() {
    return "counting";
  }

  @Override
  public Set<ConfigOption<?>> requiredOptions() {
    return Set.of(METRIC, SKETCHES);
  }

  @Override
  public Set<ConfigOption<?>> optionalOptions() {
    return Set.of();
  }

  @Override
  public DynamicTableSink createDynamicTableSink(Context context) {
    FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
    helper.validate();
    return new Table(helper.getOptions().get(METRIC), helper.getOptions().get(SKETCHES));
  }

  private record Table(int metric, boolean sketches) implements DynamicTableSink {
    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
      return ChangelogMode.insertOnly();
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
      return SinkV2Provider.of(new Counting(metric, sketches));
    }

    @Override
    public DynamicTableSink copy() {
      return new Table(metric, sketches);
    }

    @Override
    public String asSummaryString() {
      return "counting";
    }
  }

  private record Counting(int metric, boolean sketches) implements Sink<RowData> {
    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
      Totals totals = Totals.all[metric];
      return new SinkWriter<>() {
        @Override
        public void write(RowData row, Context place) {
          totals.take(row, sketches);
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() {}
      };
    }
  }
}
