// Java's JdbcCatalog on a database that others use too, told by lines on standard input; each is answered by a line "= ..." on standard output.
//   create NS TABLE          (id BIGINT NOT NULL, name STRING); the namespace too
//   append NS TABLE ID NAME  a file of one row
//   rows NS TABLE            ids and names, sorted
//   list                     namespaces, then tables of each
//   set NS TABLE KEY N       N commits, KEY counting; conflicts are tried again
//   drop NS TABLE
import java.io.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.catalog.*;
import org.apache.iceberg.data.*;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.*;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.Types;

public class CatalogShared {
    static Catalog catalog;

    static String create(Namespace ns, String name) {
        SupportsNamespaces spaces = (SupportsNamespaces) catalog;
        if (!spaces.namespaceExists(ns)) spaces.createNamespace(ns);
        Schema s = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()), Types.NestedField.optional(2, "name", Types.StringType.get()));
        catalog.createTable(TableIdentifier.of(ns, name), s);
        return "made";
    }

    static String append(Table t, long id, String name) throws IOException {
        Record r = GenericRecord.create(t.schema());
        r.setField("id", id);
        r.setField("name", name);
        OutputFile out = t.io().newOutputFile(t.locationProvider().newDataLocation(UUID.randomUUID() + ".parquet"));
        DataWriter<Record> w = Parquet.writeData(out).schema(t.schema()).createWriterFunc(GenericParquetWriter::create).withSpec(t.spec()).build();
        try (w) {
            w.write(r);
        }
        t.newAppend().appendFile(w.toDataFile()).commit();
        return "appended";
    }

    static String rows(Table t) throws IOException {
        List<String> rows = new ArrayList<>();
        try (CloseableIterable<Record> all = IcebergGenerics.read(t).build()) {
            for (Record r : all) rows.add(r.getField("id") + ":" + r.getField("name"));
        }
        Collections.sort(rows);
        return String.join(" ", rows);
    }

    static String list() {
        List<String> out = new ArrayList<>();
        for (Namespace ns : ((SupportsNamespaces) catalog).listNamespaces()) {
            out.add(ns.toString());
            for (TableIdentifier t : catalog.listTables(ns)) out.add(t.toString());
        }
        Collections.sort(out);
        return String.join(" ", out);
    }

    static String set(TableIdentifier id, String key, int n) {
        for (int i = 0; i < n; ) {
            try {
                catalog.loadTable(id).updateProperties().set(key, Integer.toString(i + 1)).commit();
                i++;
            } catch (CommitFailedException e) {
                // others were faster: again
            }
        }
        return "set";
    }

    static String obey(String[] w) throws IOException {
        if (w[0].equals("list")) return list();
        Namespace ns = Namespace.of(w[1]);
        TableIdentifier id = TableIdentifier.of(ns, w[2]);
        switch (w[0]) {
            case "create": return create(ns, w[2]);
            case "append": return append(catalog.loadTable(id), Long.parseLong(w[3]), w[4]);
            case "rows": return rows(catalog.loadTable(id));
            case "set": return set(id, w[3], Integer.parseInt(w[4]));
            case "drop": return "dropped " + catalog.dropTable(id, false);
            default: return "what is " + w[0] + "?";
        }
    }

    public static void main(String[] args) throws IOException {
        Map<String, String> p = new HashMap<>(Map.of("uri", args[0], "warehouse", args[1], "jdbc.schema-version", "V1"));
        catalog = CatalogUtil.loadCatalog("org.apache.iceberg.jdbc.JdbcCatalog", "lake", p, new Configuration());
        System.out.println("= up");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String answer;
            try {
                answer = obey(line.split(" "));
            } catch (RuntimeException e) {
                answer = e.toString().replace('\n', ' ');
            }
            System.out.println("= " + answer);
        }
    }
}
