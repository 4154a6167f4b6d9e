import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import org.apache.flink.configuration.*;
import org.apache.flink.table.api.*;

/**
 * FlinkScript CONF_DIR FILE.sql wait|nowait: runs a Flink SQL script through the Table API against the cluster of CONF_DIR.
 *
 * <p>Statements end with a semicolon that stands outside of quotes, comments and statement sets. SET 'key' = 'value' before
 * the first other statement also reaches the environment's own configuration. INSERT and statement sets print "job ID"; with wait
 * the next statement begins after the job's end. Queries print their rows. The first failure ends the run with status 1.
 */
public class FlinkScript {
  // A comment (not a hint), a quoted text, a semicolon, or any other character.
  static final Pattern PIECE = Pattern.compile("--[^\n]*|/\\*(?!\\+).*?\\*/|'(?:[^']|'')*'|`[^`]*`|;|.", Pattern.DOTALL);
  static final Pattern OPEN_SET = Pattern.compile("(EXECUTE|BEGIN)\\s+STATEMENT\\s+SET\\b(?!.*\\bEND$).*", Pattern.DOTALL | Pattern.CASE_INSENSITIVE);
  static final Pattern SET = Pattern.compile("SET\\s+'?([^'=]+?)'?\\s*=\\s*'?(.*?)'?", Pattern.DOTALL | Pattern.CASE_INSENSITIVE);

  static List<String> statements(String script) {
    List<String> all = new ArrayList<>();
    StringBuilder current = new StringBuilder();
    for (Matcher m = PIECE.matcher(script); m.find(); ) {
      String piece = m.group();
      if (piece.startsWith("--") || (piece.startsWith("/*") && piece.length() > 3)) current.append(' ');
      else if (piece.equals(";") && !OPEN_SET.matcher(current.toString().trim()).matches()) {
        all.add(current.toString().trim());
        current.setLength(0);
      } else current.append(piece);
    }
    all.add(current.toString().trim());
    all.removeIf(String::isEmpty);
    return all;
  }

  static void run(TableEnvironment env, String sql, boolean wait) throws Exception {
    Matcher set = SET.matcher(sql);
    if (set.matches()) {
      env.getConfig().set(set.group(1), set.group(2));
      return;
    }
    env.getConfig().set("table.dml-sync", "false");
    TableResult result = env.executeSql(sql.replaceFirst("(?is)^BEGIN\\s+STATEMENT\\s+SET\\s*;", "EXECUTE STATEMENT SET BEGIN "));
    boolean job = sql.toUpperCase(Locale.ROOT).matches("(?s)(INSERT|EXECUTE|BEGIN|UPDATE|DELETE)\\b.*");
    if (!job) {
      try (var rows = result.collect()) {
        while (rows.hasNext()) System.out.println(rows.next());
      }
      return;
    }
    System.out.println("job " + result.getJobClient().orElseThrow().getJobID());
    if (wait) result.await();
  }

  public static void main(String[] args) throws Exception {
    List<String> script = statements(Files.readString(Path.of(args[1])));
    Configuration conf = GlobalConfiguration.loadConfiguration(args[0]);
    for (String sql : script) {
      Matcher set = SET.matcher(sql);
      if (!set.matches()) break;
      conf.setString(set.group(1), set.group(2));
    }
    TableEnvironment env = TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(conf).build());
    for (String sql : script) {
      try {
        run(env, sql, args[2].equals("wait"));
      } catch (Throwable failed) {
        System.out.println("failed: " + sql.replaceAll("\\s+", " "));
        for (Throwable t = failed; t != null; t = t.getCause()) System.out.println("  " + t.toString().lines().findFirst().orElse(""));
        System.exit(1);
      }
    }
    System.exit(0); // clients leave threads behind
  }
}
