import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * KafkaSteps BROKER TOPIC PARTITION STEP...: one record a step, r1, r2, ..., all into one partition.
 *
 * <p>commit: in a transaction that is committed. abort: in one that is aborted after the record is in the log. plain: in none.
 * open: in one that nobody ends; the broker gives it up after its time-out (60 s), and what follows it is not stable
 * until then. Must be the last step. Prints "STEP VALUE OFFSET" for each.
 */
public class KafkaSteps {
  static KafkaProducer<String, String> producer(String broker, Map<String, Object> more) {
    Map<String, Object> conf = new java.util.HashMap<>(more);
    conf.put("bootstrap.servers", broker);
    return new KafkaProducer<>(conf, new StringSerializer(), new StringSerializer());
  }

  public static void main(String[] args) throws Exception {
    List<String> steps = List.of(args).subList(3, args.length);
    for (String s : steps) if (!List.of("commit", "abort", "plain", "open").contains(s)) throw new IllegalArgumentException(s);
    int n = 0;
    try (var plain = producer(args[0], Map.of());
        var txn = producer(args[0], Map.of("transactional.id", "steps-" + ProcessHandle.current().pid() + "-" + System.currentTimeMillis()))) {
      txn.initTransactions();
      for (String step : steps) {
        var p = step.equals("plain") ? plain : txn;
        String value = "r" + ++n;
        if (p == txn) txn.beginTransaction();
        var sent = p.send(new ProducerRecord<>(args[1], Integer.valueOf(args[2]), null, value));
        p.flush();
        System.out.println(step + " " + value + " " + sent.get().offset());
        System.out.flush();
        if (step.equals("commit")) txn.commitTransaction();
        if (step.equals("abort")) txn.abortTransaction();
        if (step.equals("open")) Runtime.getRuntime().halt(0); // an orderly end would abort it
      }
    }
  }
}
