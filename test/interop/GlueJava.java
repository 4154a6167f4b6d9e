import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.aws.glue.GlueCatalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.types.Types;

/** Iceberg's own GlueCatalog at a table of ours. GlueJava URL DATABASE TABLE: changes its schema and its properties, each by a commit of its own. */
public class GlueJava {
    public static void main(String[] args) throws Exception {
        GlueCatalog catalog = new GlueCatalog();
        catalog.initialize("java", Map.of("warehouse", "s3://lake/warehouse", "glue.endpoint", args[0], "s3.endpoint", args[0], "s3.path-style-access", "true", "client.region", "us-east-1"));
        try (catalog) {
            Table table = catalog.loadTable(TableIdentifier.of(args[1], args[2]));
            table.updateSchema()
                .addColumn("tags", Types.ListType.ofOptional(100, Types.StringType.get()), "a list")
                .addColumn("pos", Types.StructType.of(Types.NestedField.optional(101, "lat", Types.DoubleType.get()), Types.NestedField.optional(102, "what", Types.UUIDType.get())))
                .renameColumn("host", "machine")
                .deleteColumn("ts")
                .updateColumnDoc("id", "the key")
                .commit();
            table.updateProperties().set("comment", "changed by Java").set("write.data.path", "s3://lake/data-of-t").commit();
            System.out.println(table.location());
        }
    }
}
