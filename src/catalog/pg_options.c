/* The properties of PostgreSQL's JDBC driver (42.7) and what becomes of each: one table, for checks, mapping and the reference page. */
#include "catalog/pg_int.h"

#define TUNING "it tunes the JDBC driver; a catalog sends a few short statements"
#define LOGGING "it concerns the logging of the JDBC driver"
#define RESULTS "it concerns how the JDBC driver hands out results"
#define JAVA_CLASS "it names a Java class; libpq has none"

/* U: mapped (name, type, default, allowed, doc); N: without meaning; R: refused. */
#define PROPERTIES(U, N, R)                                                                                            \
    U("user", STRING, NULL, NULL, "User of the database.")                                                             \
    U("password", STRING, NULL, NULL, "Password of the user; without one, libpq looks into its password file.")        \
    U("ssl", BOOL, NULL, NULL, "true: the same as sslmode = verify-full.")                                             \
    U("sslmode", ENUM, "prefer", "disable|allow|prefer|require|verify-ca|verify-full", "Whether the connection is encrypted and the server checked.") \
    U("sslrootcert", STRING, NULL, NULL, "File with the certificates that may sign the server's (~/.postgresql/root.crt).") \
    U("sslcert", STRING, NULL, NULL, "File with our certificate.")                                                     \
    U("sslkey", STRING, NULL, NULL, "File with the key of our certificate, PEM or DER.")                               \
    U("sslpassword", STRING, NULL, NULL, "Password of that key.")                                                      \
    U("ApplicationName", STRING, "frazil", NULL, "The name of this connection in pg_stat_activity.")                   \
    U("connectTimeout", INT, "10", NULL, "Seconds for a connection to come up.")                                       \
    U("loginTimeout", INT, NULL, NULL, "The same.")                                                                    \
    U("socketTimeout", INT, NULL, NULL, "Seconds for an answer to come before the connection counts as lost.")         \
    U("currentSchema", STRING, NULL, NULL, "The search path: schemas, separated by commas, the first of which has the catalog's tables.") \
    U("options", STRING, NULL, NULL, "Settings of the session, as -c name=value.")                                     \
    U("targetServerType", ENUM, "any", "any|primary|master", "primary: of several hosts, one that can be written to. With several hosts that is the default here.") \
    U("tcpKeepAlive", BOOL, NULL, NULL, "Whether the system tests idle connections.")                                  \
    U("gssEncMode", ENUM, NULL, "disable|allow|prefer|require", "Whether GSSAPI encrypts the connection.")             \
    U("kerberosServerName", STRING, NULL, NULL, "Kerberos service name of the server.")                                \
    U("channelBinding", ENUM, NULL, "disable|prefer|require", "Whether the login is bound to the encrypted channel.")  \
    U("service", STRING, NULL, NULL, "Name of a group of settings in libpq's service file.")                           \
    N("prepareThreshold", TUNING)                                                                                      \
    N("preparedStatementCacheQueries", TUNING)                                                                         \
    N("preparedStatementCacheSizeMiB", TUNING)                                                                         \
    N("databaseMetadataCacheFields", TUNING)                                                                           \
    N("databaseMetadataCacheFieldsMiB", TUNING)                                                                        \
    N("defaultRowFetchSize", TUNING)                                                                                   \
    N("adaptiveFetch", TUNING)                                                                                         \
    N("adaptiveFetchMinimum", TUNING)                                                                                  \
    N("adaptiveFetchMaximum", TUNING)                                                                                  \
    N("binaryTransfer", TUNING)                                                                                        \
    N("binaryTransferEnable", TUNING)                                                                                  \
    N("binaryTransferDisable", TUNING)                                                                                 \
    N("reWriteBatchedInserts", TUNING)                                                                                 \
    N("preferQueryMode", TUNING)                                                                                       \
    N("maxResultBuffer", TUNING)                                                                                       \
    N("maxSendBufferSize", TUNING)                                                                                     \
    N("sendBufferSize", TUNING)                                                                                        \
    N("receiveBufferSize", TUNING)                                                                                     \
    N("tcpNoDelay", TUNING)                                                                                            \
    N("hostRecheckSeconds", TUNING)                                                                                    \
    N("loadBalanceHosts", "hosts are tried in the order given")                                                        \
    N("groupStartupParameters", TUNING)                                                                                \
    N("cancelSignalTimeout", "statements are not cancelled; a connection that does not answer is dropped")             \
    N("queryTimeout", "'frazil.sql.busy-timeout' and 'jdbc.socketTimeout' bound each statement")                       \
    N("sslResponseTimeout", "'jdbc.connectTimeout' bounds the whole of a login")                                       \
    N("gssResponseTimeout", "'jdbc.connectTimeout' bounds the whole of a login")                                       \
    N("autosave", "a failed statement ends its transaction")                                                           \
    N("cleanupSavepoints", "a failed statement ends its transaction")                                                  \
    N("assumeMinServerVersion", TUNING)                                                                                \
    N("allowEncodingChanges", "the connection speaks UTF-8")                                                           \
    N("protocolVersion", "libpq speaks version 3")                                                                     \
    N("stringtype", RESULTS)                                                                                           \
    N("unknownLength", RESULTS)                                                                                        \
    N("disableColumnSanitiser", RESULTS)                                                                               \
    N("escapeSyntaxCallMode", RESULTS)                                                                                 \
    N("hideUnprivilegedObjects", RESULTS)                                                                              \
    N("quoteReturningIdentifiers", RESULTS)                                                                            \
    N("readOnlyMode", RESULTS)                                                                                         \
    N("logUnclosedConnections", LOGGING)                                                                               \
    N("logServerErrorDetail", LOGGING)                                                                                 \
    N("loggerLevel", LOGGING)                                                                                          \
    N("loggerFile", LOGGING)                                                                                           \
    N("xmlFactoryFactory", JAVA_CLASS)                                                                                 \
    N("jaasApplicationName", "Kerberos tickets come from the system's cache")                                          \
    N("jaasLogin", "Kerberos tickets come from the system's cache")                                                    \
    N("gsslib", "there is one GSSAPI library")                                                                         \
    N("useSpnego", "there is one GSSAPI library")                                                                      \
    N("sspiServiceClass", "it is a setting for Windows")                                                               \
    R("sslfactory", JAVA_CLASS "; say with 'sslmode' and 'sslrootcert' how the server is checked")                     \
    R("sslfactoryarg", JAVA_CLASS "; say with 'sslmode' and 'sslrootcert' how the server is checked")                  \
    R("sslhostnameverifier", JAVA_CLASS "; 'sslmode' = 'verify-full' checks the name of the host")                     \
    R("sslpasswordcallback", JAVA_CLASS "; give 'sslpassword'")                                                        \
    R("sslNegotiation", "Debian's libpq 15 has no direct TLS negotiation; leave it out")                               \
    R("socketFactory", JAVA_CLASS "; a Unix socket's directory can stand as host: postgresql:///db?host=/dir")         \
    R("socketFactoryArg", JAVA_CLASS)                                                                                  \
    R("authenticationPluginClassName", JAVA_CLASS "; give 'password'")                                                 \
    R("localSocketAddress", "libpq cannot choose the local address; leave it out")                                     \
    R("requireAuth", "Debian's libpq 15 cannot demand a way of login; 'channelBinding' = 'require' demands SCRAM")     \
    R("scramMaxIterations", "libpq has no such bound; leave it out")                                                   \
    R("replication", "a catalog does not speak the replication protocol; leave it out")                                \
    R("readOnly", "a catalog is written to; leave it out")

#define OPT_U(name, type, dflt, allowed, doc) {"jdbc." name, FZ_OPT_##type, FZ_OPT_USED, dflt, allowed, doc, NULL},
#define OPT_N(name, why) {"jdbc." name, FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, why},
#define OPT_R(name, why) {"jdbc." name, FZ_OPT_STRING, FZ_OPT_REFUSED, NULL, NULL, NULL, why},
static const fz_option options[] = {PROPERTIES(OPT_U, OPT_N, OPT_R){NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL}};
const fz_option *cat_jdbc_options(void) { return options; }
