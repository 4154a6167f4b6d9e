// Java's own catalogs on tables made here: loads db.t, commits a property, makes a table. See catalog_java.sh.
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;

public class CatalogJava {
    public static void main(String[] args) {
        boolean hadoop = args[0].equals("hadoop");
        Map<String, String> p = new HashMap<>();
        p.put("warehouse", args[1]);
        if (!hadoop) p.put("uri", args[2]);
        String impl = hadoop ? "org.apache.iceberg.hadoop.HadoopCatalog" : "org.apache.iceberg.jdbc.JdbcCatalog";
        Catalog c = CatalogUtil.loadCatalog(impl, "lake", p, new Configuration());
        Table t = c.loadTable(TableIdentifier.of("db", "t"));
        t.updateProperties().set("java", "was here").set("seen", t.properties().get("k")).commit();
        Namespace ns = Namespace.of("jdb");
        if (!((SupportsNamespaces) c).namespaceExists(ns)) {
            ((SupportsNamespaces) c).createNamespace(ns);
            c.createTable(TableIdentifier.of(ns, "made"), t.schema());
        }
    }
}
