// Iceberg's Java implementation on metadata and manifests written here: reads all, checks tuples against the directories of the files, plans with a filter.
// usage: java -cp CLASSPATH ManifestJava.java METADATA_LOCATION   (CLASSPATH: iceberg-core and what it needs; the location as manifest_tool prints it)
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Files;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

public class ManifestJava {
    static class Local implements FileIO {
        public InputFile newInputFile(String path) { return Files.localInput(path.replaceFirst("^file://", "")); }
        public OutputFile newOutputFile(String path) { throw new UnsupportedOperationException(); }
        public void deleteFile(String path) { throw new UnsupportedOperationException(); }
    }

    static void check(String what, boolean ok) {
        System.out.println((ok ? "ok   " : "FAIL ") + what);
        if (!ok) System.exit(1);
    }

    public static void main(String[] args) throws Exception {
        FileIO io = new Local();
        Table t = new BaseTable(new StaticTableOperations(args[0], io), "t");
        for (Snapshot s : t.snapshots()) {
            int files = 0;
            Set<String> seen = new HashSet<>();
            for (ManifestFile m : s.allManifests(io)) {
                PartitionSpec spec = t.specs().get(m.partitionSpecId());
                int inManifest = 0;
                try (ManifestReader<DataFile> r = ManifestFiles.read(m, io, t.specs())) {
                    for (DataFile f : r) {
                        String path = spec.partitionToPath(f.partition());
                        if (!f.path().toString().contains("/data/" + path + "/")) check("directory of " + f.path() + " is " + path, false);
                        if (f.dataSequenceNumber() < 1 || f.dataSequenceNumber() > s.sequenceNumber()) check("sequence number of " + f.path(), false);
                        if (!seen.add(f.path().toString())) check(f.path() + " once", false);
                        inManifest++;
                    }
                }
                check("counts of " + m.path().replaceFirst(".*/", ""), inManifest == m.addedFilesCount() + m.existingFilesCount());
                files += inManifest;
            }
            check("snapshot " + s.snapshotId() + " has " + files + " files", String.valueOf(files).equals(s.summary().get("total-data-files")));
        }
        List<String> hit = new ArrayList<>();
        try (CloseableIterable<FileScanTask> tasks = t.newScan().filter(Expressions.equal("host-name", "h\u00e9-3")).planFiles()) {
            for (FileScanTask task : tasks) hit.add(task.file().path().toString());
        }
        check("a filter finds 3 of 15 files", hit.size() == 3);
    }
}
