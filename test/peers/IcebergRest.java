package org.apache.iceberg.rest; // the fixture's servlet and context are not public

import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.gzip.GzipHandler;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * IcebergRest PORT [KEY=VALUE...]: Apache Iceberg's REST catalog fixture over the catalog that the properties describe.
 *
 * <p>The main class that the fixture comes with listens on all interfaces, this one on 127.0.0.1 only. A line for each request goes to the output:
 * METHOD PATH STATUS.
 */
public class IcebergRest {
  public static void main(String[] args) throws Exception {
    var properties = Arrays.stream(args).skip(1).map(a -> a.split("=", 2)).collect(Collectors.toMap(a -> a[0], a -> a[1]));
    var catalog = CatalogUtil.buildIcebergCatalog("behind_rest", properties, new Configuration());
    var adapter = new RESTServerCatalogAdapter(new RESTCatalogServer.CatalogContext(catalog, properties));
    var handler = new ServletContextHandler();
    handler.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    handler.insertHandler(new GzipHandler());
    var server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setRequestLog((q, a) -> System.out.println(q.getMethod() + " " + q.getOriginalURI() + " " + a.getStatus()));
    server.setHandler(handler);
    server.start();
    server.join();
  }
}
