package dev.weir.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.StatementSet;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Flink in one JVM: a cluster that runs as long as the program, and a job for each line it reads.
 *
 * <p>Arguments are settings of Flink, {@code name=value}. A line is {@code <metrics> <explained>
 * <file>}; statements in the file are divided by empty lines, and those that insert make one job,
 * whose plan is looked at if it is to be explained. {@code running} tells that it is planned and
 * submitted, {@code ended} that it has ended; a line more tells what its panes add up to.
 */
public final class Peer {
  private Peer() {}

  public static void main(String[] settings) throws Exception {
    Configuration told = new Configuration();
    for (String setting : settings) {
      String[] pair = setting.split("=", 2);
      told.setString(pair[0], pair[1]);
    }
    told.set(RestOptions.BIND_PORT, "0");
    MiniClusterConfiguration cluster =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(told)
            .setNumTaskManagers(1)
            .setNumSlotsPerTaskManager(told.get(TaskManagerOptions.NUM_TASK_SLOTS))
            .build();
    try (MiniCluster running = new MiniCluster(cluster)) {
      running.start();
      Configuration client = new Configuration(told);
      client.setString("execution.target", "remote");
      client.set(RestOptions.ADDRESS, running.getRestAddress().get().getHost());
      client.set(RestOptions.PORT, running.getRestAddress().get().getPort());
      System.out.println("ready");
      serve(client);
    }
  }

  private static void serve(Configuration client) throws Exception {
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ", 3);
      Totals.begin(Integer.parseInt(words[0]));
      run(client, Files.readString(Path.of(words[2])), Boolean.parseBoolean(words[1]));
      System.out.println("ended");
      System.out.println(Totals.json());
    }
  }

  private static void run(Configuration client, String script, boolean explained) throws Exception {
    TableEnvironment tables =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().withConfiguration(client).build());
    StatementSet inserts = tables.createStatementSet();
    for (String statement : script.split("\n\n")) {
      if (statement.startsWith("INSERT")) {
        inserts.addInsertSql(statement);
      } else if (!statement.isBlank()) {
        tables.executeSql(statement);
      }
    }
    if (explained) {
      checkScans(inserts.explain());
    }
    TableResult job = inserts.execute();
    System.out.println("running");
    job.await();
  }

  /** It would be unfair if Flink read and parsed the topic once for each query. */
  private static void checkScans(String plans) {
    String plan = plans.substring(plans.indexOf("== Optimized Execution Plan =="));
    int scans = plan.split("TableSourceScan\\(", -1).length - 1;
    if (scans != 1) {
      throw new IllegalStateException("Flink must read the topic once, got " + plan);
    }
  }
}
