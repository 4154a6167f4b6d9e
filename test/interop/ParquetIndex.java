// parquet-java reads what the parquet room writes: page indexes parse and agree with the pages; a read that filters by them gives the same
// rows as one that does not. usage: java -cp JARS ParquetIndex.java FILE... (files of test/tools/parquet_write.c)
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.*;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.*;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.*;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.internal.column.columnindex.*;
import org.apache.parquet.io.api.Binary;

public class ParquetIndex {
    static Configuration conf = new Configuration(false);

    static long count(String file, FilterPredicate p, boolean index) throws Exception {
        Configuration c = new Configuration(conf);
        c.setBoolean("parquet.filter.columnindex.enabled", index);
        c.setBoolean("parquet.filter.stats.enabled", index);
        c.setBoolean("parquet.filter.dictionary.enabled", index);
        var b = ParquetReader.builder(new GroupReadSupport(), new Path(file)).withConf(c).useColumnIndexFilter(index).useStatsFilter(index).useDictionaryFilter(index);
        if (p != null) b = b.withFilter(FilterCompat.get(p));
        long n = 0;
        try (ParquetReader<Group> r = b.build()) {
            for (Group g; (g = r.read()) != null; n++) g.toString();
        }
        return n;
    }

    static void check(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    /** Pages packed by zstd as Trino and Athena unpack them: their decoder is not libzstd. */
    static void otherDecoder(String file, ParquetFileReader r) throws Exception {
        int pages = 0;
        try (var in = new java.io.RandomAccessFile(file, "r")) {
            for (BlockMetaData block : r.getFooter().getBlocks())
                for (ColumnChunkMetaData c : block.getColumns()) {
                    if (c.getCodec() != CompressionCodecName.ZSTD) continue;
                    byte[] chunk = new byte[(int) c.getTotalSize()];
                    in.seek(c.getStartingPos());
                    in.readFully(chunk);
                    var left = new java.io.ByteArrayInputStream(chunk);
                    while (left.available() > 0) {
                        var head = org.apache.parquet.format.Util.readPageHeader(left);
                        byte[] packed = left.readNBytes(head.getCompressed_page_size()), one = new byte[head.getUncompressed_page_size()];
                        int n = new io.airlift.compress.zstd.ZstdDecompressor().decompress(packed, 0, packed.length, one, 0, one.length);
                        check(n == one.length && Arrays.equals(one, com.github.luben.zstd.Zstd.decompress(packed, one.length)), c + ": the decoders differ");
                        pages++;
                    }
                }
        }
        System.out.printf("%s: %d zstd pages, two decoders%n", file, pages);
    }

    static void indexes(String file) throws Exception {
        conf.setBoolean("parquet.page.verify-checksum.enabled", true);
        try (ParquetFileReader r = ParquetFileReader.open(HadoopInputFile.fromPath(new Path(file), conf), org.apache.parquet.ParquetReadOptions.builder().usePageChecksumVerification().build())) {
            int pages = 0, columns = 0;
            for (BlockMetaData block : r.getFooter().getBlocks())
                for (ColumnChunkMetaData c : block.getColumns()) {
                    ColumnIndex ci = r.readColumnIndex(c);
                    OffsetIndex oi = r.readOffsetIndex(c);
                    check(oi != null && ci != null, c + ": no index");
                    check(oi.getFirstRowIndex(0) == 0, c + ": first row");
                    check(c.getStatistics() != null && c.getStatistics().isNumNullsSet(), c + ": statistics");
                    long nulls = 0, size = 0;
                    for (int i = 0; i < oi.getPageCount(); i++) {
                        nulls += ci.getNullCounts().get(i);
                        size += oi.getCompressedPageSize(i);
                        check(ci.getNullPages().get(i) || ci.getMaxValues().get(i) != null, c + ": bounds");
                        check(oi.getLastRowIndex(i, block.getRowCount()) >= oi.getFirstRowIndex(i), c + ": rows");
                    }
                    check(nulls == c.getStatistics().getNumNulls(), c + ": null counts");
                    check(size <= c.getTotalSize(), c + ": sizes");
                    pages += oi.getPageCount();
                    columns++;
                }
            long rows = 0;
            for (PageReadStore p; (p = r.readNextRowGroup()) != null; ) rows += p.getRowCount();
            check(rows == r.getRecordCount(), "rows");
            otherDecoder(file, r);
            System.out.printf("%s: %d rows, %d chunks, %d pages%n", file, rows, columns, pages);
        }
    }

    public static void main(String[] args) throws Exception {
        for (String file : args) {
            indexes(file);
            List<FilterPredicate> ps = new ArrayList<>();
            for (int v : new int[] {-900, 0, 700, 3000, 12000, 1 << 30}) {
                ps.add(FilterApi.gt(FilterApi.intColumn("i"), v));
                ps.add(FilterApi.lt(FilterApi.intColumn("i"), v));
                ps.add(FilterApi.eq(FilterApi.intColumn("i"), v));
                ps.add(FilterApi.gtEq(FilterApi.doubleColumn("d"), (double) v / 10));
                ps.add(FilterApi.lt(FilterApi.floatColumn("f"), (float) v / 10));
                ps.add(FilterApi.gt(FilterApi.longColumn("ts"), (long) v * 1000000));
                ps.add(FilterApi.lt(FilterApi.longColumn("d18"), v * 100000000000L));
            }
            for (String s : new String[] {"", "café-1", "café-36", "zzz"}) {
                ps.add(FilterApi.eq(FilterApi.binaryColumn("s"), Binary.fromString(s)));
                ps.add(FilterApi.gt(FilterApi.binaryColumn("s"), Binary.fromString(s)));
                ps.add(FilterApi.ltEq(FilterApi.binaryColumn("msg"), Binary.fromString("message 1" + s)));
                ps.add(FilterApi.eq(FilterApi.binaryColumn("st.x"), Binary.fromString("x" + s)));
            }
            ps.add(FilterApi.eq(FilterApi.binaryColumn("s"), null));
            ps.add(FilterApi.notEq(FilterApi.binaryColumn("s"), null));
            ps.add(FilterApi.eq(FilterApi.intColumn("st.y"), null));
            long all = count(file, null, false);
            for (FilterPredicate p : ps) {
                long with = count(file, p, true), without = count(file, p, false);
                check(with == without, file + ": " + p + " gives " + with + " with the indexes, " + without + " without");
            }
            System.out.println(file + ": " + ps.size() + " filters agree over " + all + " rows");
        }
    }
}
