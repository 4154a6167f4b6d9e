import java.io.IOException;
import java.math.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.*;
import java.util.*;
import java.util.stream.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.data.*;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.*;
import org.apache.iceberg.parquet.*;
import org.apache.iceberg.types.*;
import org.apache.iceberg.util.StructLikeUtil;

/**
 * TableReader METADATA SNAPSHOT|- [rows] [verify]: reads a table with Apache Iceberg's generic reader and prints "total ROWS HASH" as
 * read_table.py defines them; with "rows" also "row HEX", the text of each.
 *
 * <p>With "verify": one line for each statement of the metadata that the files do not bear out. Such statements leave a full
 * scan as it is and spoil what skips files by them. Checked are, for each data file, its size, records, field ids, split offsets, the counts of
 * values, NULLs and NaNs, bounds, and that its rows belong to its partition; for each manifest its length, files, rows and
 * partition summaries; and the totals of the snapshot's summary. Exit status 1 if there is any.
 */
public class TableReader {
  static final List<String> wrong = new ArrayList<>();

  static void expect(boolean holds, String where, String what, Object claimed, Object found) {
    if (!holds) wrong.add("wrong: " + where + ": " + what + " is " + claimed + " in the metadata, found " + found);
  }

  static void equal(String where, String what, Object claimed, Object found) {
    expect(claimed == null || claimed.equals(found), where, what, claimed, found);
  }

  // ---- texts ----

  static String hex(byte[] b) { return HexFormat.of().formatHex(b); }

  static byte[] bytes(ByteBuffer b) {
    byte[] out = new byte[b.remaining()];
    b.duplicate().get(out);
    return out;
  }

  static String micros(Object v) {
    Instant i = v instanceof OffsetDateTime o ? o.toInstant() : ((LocalDateTime) v).toInstant(ZoneOffset.UTC);
    return Long.toString(Math.addExact(Math.multiplyExact(i.getEpochSecond(), 1000000L), i.getNano() / 1000)); // ChronoUnit counts in nanoseconds, which end in 1677
  }

  static String text(Type t, Object v) {
    if (v == null) return "N";
    return switch (t.typeId()) {
      case BOOLEAN -> (Boolean) v ? "T" : "F";
      case INTEGER, LONG -> v.toString();
      case DATE -> Long.toString(((LocalDate) v).toEpochDay());
      case TIME -> Long.toString(((LocalTime) v).toNanoOfDay() / 1000);
      case TIMESTAMP -> micros(v);
      case FLOAT -> String.format("h%08x", Float.floatToIntBits((Float) v));
      case DOUBLE -> String.format("h%016x", Double.doubleToLongBits((Double) v));
      case DECIMAL -> "d" + ((BigDecimal) v).setScale(((Types.DecimalType) t).scale(), RoundingMode.UNNECESSARY).unscaledValue();
      case STRING -> "s" + v.toString().getBytes(StandardCharsets.UTF_8).length + ":" + v;
      case UUID -> "b" + v.toString().replace("-", "");
      case FIXED -> "b" + hex((byte[]) v);
      case BINARY -> "b" + hex(bytes((ByteBuffer) v));
      case STRUCT -> "(" + row(t.asStructType(), (StructLike) v) + ")";
      case LIST -> ((List<?>) v).stream().map(e -> text(t.asListType().elementType(), e)).collect(Collectors.joining(",", "[", "]"));
      case MAP -> ((Map<?, ?>) v).entrySet().stream()
          .map(e -> text(t.asMapType().keyType(), e.getKey()) + "=" + text(t.asMapType().valueType(), e.getValue()))
          .sorted().collect(Collectors.joining(",", "<", ">"));
      default -> throw new IllegalArgumentException("no text for " + t);
    };
  }

  static String row(Types.StructType t, StructLike r) {
    return IntStream.range(0, t.fields().size()).mapToObj(i -> text(t.fields().get(i).type(), r.get(i, Object.class))).collect(Collectors.joining(","));
  }

  // ---- what a column of a file holds ----

  static class Column {
    long values, nulls, nans;
    Object low, high;

    void add(Object v, Comparator<Object> order) {
      values++;
      if (v == null) nulls++;
      else if (v.equals(Double.NaN) || v.equals(Float.NaN)) nans++;
      else {
        Object kept = v instanceof ByteBuffer b ? ByteBuffer.wrap(bytes(b)) : v; // the reader uses its buffer again
        if (low == null || order.compare(v, low) < 0) low = kept;
        if (high == null || order.compare(v, high) > 0) high = kept;
      }
    }
  }

  /** Primitive columns, those in structs too; lists and maps have no counts that are worth a check. */
  static void collect(Types.StructType t, StructLike r, Map<Integer, Column> out) {
    for (int i = 0; i < t.fields().size(); i++) {
      Types.NestedField f = t.fields().get(i);
      Object v = r == null ? null : r.get(i, Object.class);
      if (f.type().isStructType()) collect(f.type().asStructType(), (StructLike) v, out);
      if (f.type().isPrimitiveType()) out.computeIfAbsent(f.fieldId(), k -> new Column()).add(v, Comparators.forType(f.type().asPrimitiveType()));
    }
  }

  static <V> V at(Map<Integer, V> m, int id) { return m == null ? null : m.get(id); }

  static void checkBound(String where, String side, Type t, ByteBuffer claimed, Object found, int sign) {
    if (claimed == null || found == null) return;
    Object bound = Conversions.fromByteBuffer(t, claimed);
    expect(Comparators.<Object>forType(t.asPrimitiveType()).compare(bound, found) * sign >= 0, where, side + " bound", bound, found);
  }

  static void checkColumn(String where, DataFile f, int id, Type t, Column c) {
    equal(where, "value count", at(f.valueCounts(), id), c.values);
    equal(where, "null count", at(f.nullValueCounts(), id), c.nulls);
    equal(where, "NaN count", at(f.nanValueCounts(), id), c.nans);
    checkBound(where, "lower", t, at(f.lowerBounds(), id), c.low, -1);
    checkBound(where, "upper", t, at(f.upperBounds(), id), c.high, 1);
    if (c.low == null && c.nans == 0) equal(where, "lower bound of nothing", at(f.lowerBounds(), id), "none");
  }

  // ---- files and manifests ----

  record Source(InputFile in) implements org.apache.parquet.io.InputFile {
    public long getLength() { return in.getLength(); }

    public org.apache.parquet.io.SeekableInputStream newStream() {
      SeekableInputStream s = in.newStream();
      return new org.apache.parquet.io.DelegatingSeekableInputStream(s) {
        public long getPos() throws IOException { return s.getPos(); }

        public void seek(long to) throws IOException { s.seek(to); }
      };
    }
  }

  static void checkFile(Table table, DataFile f) throws IOException {
    String where = f.location().replaceFirst(".*/", "");
    InputFile in = table.io().newInputFile(f.location());
    Schema schema = table.schema();
    PartitionKey key = new PartitionKey(table.specs().get(f.specId()), schema);
    Comparator<StructLike> samePartition = Comparators.forType(table.specs().get(f.specId()).partitionType());
    InternalRecordWrapper internal = new InternalRecordWrapper(schema.asStruct());
    Map<Integer, Column> columns = new TreeMap<>();
    long rows = 0, elsewhere = 0;
    equal(where, "size", f.fileSizeInBytes(), in.getLength());
    try (CloseableIterable<Record> records = Parquet.read(in).project(schema).createReaderFunc(s -> {
      expect(ParquetSchemaUtil.hasIds(s), where, "schema", "one with field ids", "none");
      return GenericParquetReaders.buildReader(schema, s);
    }).build()) {
      for (Record r : records) {
        rows++;
        key.partition(internal.wrap(r));
        if (samePartition.compare(key, f.partition()) != 0) elsewhere++;
        collect(schema.asStruct(), internal, columns);
      }
    }
    equal(where, "record count", f.recordCount(), rows);
    equal(where, "rows of other partitions", 0L, elsewhere);
    try (var file = org.apache.parquet.hadoop.ParquetFileReader.open(new Source(in))) {
      equal(where, "split offsets", f.splitOffsets(), file.getRowGroups().stream().map(g -> g.getStartingPos()).toList());
    }
    columns.forEach((id, c) -> checkColumn(where + ", " + schema.findColumnName(id), f, id, schema.findType(id), c));
  }

  static void checkSummaries(String where, PartitionSpec spec, ManifestFile m, StructLike partition) {
    for (int i = 0; m.partitions() != null && i < m.partitions().size(); i++) {
      var s = m.partitions().get(i);
      Type t = spec.partitionType().fields().get(i).type();
      Object v = partition.get(i, Object.class);
      if (v == null) expect(s.containsNull(), where, "contains_null of partition field " + i, false, "a NULL");
      if (v instanceof Double d && d.isNaN() || v instanceof Float e && e.isNaN()) { // no bound
        expect(Boolean.TRUE.equals(s.containsNaN()), where, "contains_nan of partition field " + i, s.containsNaN(), "a NaN");
        continue;
      }
      checkBound(where, "lower partition", t, s.lowerBound(), v, -1);
      checkBound(where, "upper partition", t, s.upperBound(), v, 1);
    }
  }

  /** Returns files and rows that are live in the manifest. */
  static long[] checkManifest(Table table, ManifestFile m) throws IOException {
    String where = m.path().replaceFirst(".*/", "");
    long files = 0, rows = 0;
    equal(where, "manifest length", m.length(), table.io().newInputFile(m.path()).getLength());
    try (var reader = ManifestFiles.read(m, table.io(), table.specs())) {
      for (DataFile f : reader) {
        files++;
        rows += f.recordCount();
        checkSummaries(where, table.specs().get(m.partitionSpecId()), m, StructLikeUtil.copy(f.partition()));
      }
    }
    equal(where, "live files", (long) m.addedFilesCount() + m.existingFilesCount(), files);
    equal(where, "live rows", m.addedRowsCount() + m.existingRowsCount(), rows);
    return new long[] {files, rows};
  }

  static void verify(Table table, Snapshot snapshot) throws IOException {
    if (snapshot == null) return;
    long files = 0, rows = 0;
    for (ManifestFile m : snapshot.dataManifests(table.io())) {
      long[] live = checkManifest(table, m);
      files += live[0];
      rows += live[1];
    }
    equal("snapshot summary", "total-data-files", snapshot.summary().get("total-data-files"), Long.toString(files));
    equal("snapshot summary", "total-records", snapshot.summary().get("total-records"), Long.toString(rows));
    Set<String> seen = new HashSet<>();
    try (var tasks = table.newScan().useSnapshot(snapshot.snapshotId()).includeColumnStats().planFiles()) {
      for (FileScanTask t : tasks) {
        expect(seen.add(t.file().location()), t.file().location(), "entry", "once", "twice");
        if (t.file().format() == FileFormat.PARQUET) checkFile(table, t.file());
      }
    }
    System.out.println("checked " + seen.size() + " data files");
  }

  /** Local files, or S3 as the environment has it. */
  static FileIO io(String location) {
    if (!location.startsWith("s3")) return new HadoopFileIO(new Configuration());
    Map<String, String> env = System.getenv();
    return CatalogUtil.loadFileIO("org.apache.iceberg.aws.s3.S3FileIO", Map.of("s3.endpoint", env.get("S3_ENDPOINT"), "s3.path-style-access", "true",
        "s3.access-key-id", env.get("AWS_ACCESS_KEY_ID"), "s3.secret-access-key", env.get("AWS_SECRET_ACCESS_KEY"), "client.region", env.get("AWS_REGION")), null);
  }

  public static void main(String[] args) throws Exception {
    Set<String> options = Set.copyOf(Arrays.asList(args).subList(2, args.length));
    Table table = new BaseTable(new StaticTableOperations(args[0], io(args[0])), "t");
    Snapshot snapshot = args[1].equals("-") ? table.currentSnapshot() : table.snapshot(Long.parseLong(args[1]));
    if (options.contains("verify")) verify(table, snapshot);
    Schema schema = args[1].equals("-") ? table.schema() : table.schemas().get(snapshot.schemaId());
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table);
    if (!args[1].equals("-")) scan = scan.useSnapshot(snapshot.snapshotId());
    MessageDigest sha = MessageDigest.getInstance("SHA-256");
    BigInteger sum = BigInteger.ZERO;
    long n = 0;
    try (CloseableIterable<Record> records = scan.build()) {
      for (Record r : records) {
        byte[] text = row(schema.asStruct(), r).getBytes(StandardCharsets.UTF_8);
        if (options.contains("rows")) System.out.println("row " + hex(text));
        sum = sum.add(new BigInteger(1, Arrays.copyOf(sha.digest(text), 16)));
        n++;
      }
    }
    wrong.forEach(System.out::println);
    System.out.printf("total %d %032x%n", n, sum.mod(BigInteger.TWO.pow(128)));
    System.exit(wrong.isEmpty() ? 0 : 1);
  }
}
