// Tables as Iceberg's Java implementation makes them, for append.py: a Hadoop catalog with a table for each kind of partition transform, with sort order,
// nested types and properties. usage: java -cp CLASSPATH TablesJava.java WAREHOUSE
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.types.Types;

public class TablesJava {
    static final Schema FLAT = new Schema(
        Types.NestedField.optional(1, "id", Types.LongType.get()), Types.NestedField.optional(2, "s", Types.StringType.get()), Types.NestedField.optional(3, "ts", Types.TimestampType.withoutZone()),
        Types.NestedField.optional(4, "d", Types.DateType.get()), Types.NestedField.optional(5, "amount", Types.DecimalType.of(9, 2)), Types.NestedField.optional(6, "n", Types.IntegerType.get()),
        Types.NestedField.optional(7, "tz", Types.TimestampType.withZone()), Types.NestedField.optional(8, "b", Types.BinaryType.get()), Types.NestedField.optional(9, "f", Types.BooleanType.get()),
        Types.NestedField.optional(10, "tm", Types.TimeType.get()));
    static final Map<String, String> PROPERTIES = Map.of("format-version", "2", "who", "java", "write.metadata.metrics.column.s", "full");

    static PartitionSpec.Builder spec() { return PartitionSpec.builderFor(FLAT); }

    public static void main(String[] args) throws Exception {
        try (HadoopCatalog c = new HadoopCatalog(new Configuration(), args[0])) {
            Namespace db = Namespace.of("db");
            c.createNamespace(db);
            Map<String, PartitionSpec> specs = Map.of(
                "p_identity", spec().identity("d").identity("s").identity("amount").identity("tm").build(), "p_bucket", spec().bucket("id", 16).bucket("s", 8).bucket("ts", 4).bucket("amount", 3).bucket("b", 5).build(),
                "p_truncate", spec().truncate("id", 10).truncate("s", 3).truncate("amount", 50).truncate("b", 4).build(), "p_year", spec().year("ts").build(), "p_month", spec().month("d").build(),
                "p_day", spec().day("tz").build(), "p_hour", spec().hour("ts").build(), "p_void", spec().alwaysNull("s").identity("n").build(), "p_none", PartitionSpec.unpartitioned());
            for (Map.Entry<String, PartitionSpec> e : specs.entrySet())
                c.buildTable(TableIdentifier.of(db, e.getKey()), FLAT).withPartitionSpec(e.getValue()).withProperties(PROPERTIES).withSortOrder(SortOrder.builderFor(FLAT).desc("s").asc("id").build()).create();
            Schema nested = new Schema(
                Types.NestedField.required(1, "id", Types.IntegerType.get()),
                Types.NestedField.optional(2, "arr", Types.ListType.ofOptional(10, Types.StringType.get())),
                Types.NestedField.optional(3, "m", Types.MapType.ofOptional(11, 12, Types.StringType.get(), Types.StructType.of(Types.NestedField.optional(13, "x", Types.LongType.get())))),
                Types.NestedField.optional(4, "r", Types.StructType.of(Types.NestedField.optional(14, "a", Types.StringType.get()), Types.NestedField.optional(15, "b", Types.ListType.ofOptional(16, Types.IntegerType.get())))));
            c.buildTable(TableIdentifier.of(db, "nested"), nested).withProperties(Map.of("format-version", "2", "who", "java")).create();
        }
    }
}
