/* Options of REST catalogs: the names that Iceberg 1.10's RESTSessionCatalog, RESTUtil, HTTPClient, OAuth2Properties, AuthProperties and AwsProperties know, and
 * PyIceberg's where Java has none. */
#include "catalog/rest_int.h"

#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
#define IDLE(name, why) {name, FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, why}
#define NO(name, why) {name, FZ_OPT_STRING, FZ_OPT_REFUSED, NULL, NULL, NULL, why}
#define VIEWS "views are neither read nor written"
#define PLANS "frazil plans its reads itself, from the manifests"
#define CACHE "tables are always loaded anew"

static const fz_option options[] = {
    USED("prefix", STRING, NULL, "Part of the path between /v1 and namespaces, encoded as it stands in a URL. Servers usually say it themselves."),
    USED("credential", STRING, NULL, "OAuth2 client id and secret ('id:secret', or the secret alone) for the client-credentials grant. 'env:NAME' takes it (and any other option of a REST catalog) from the environment."),
    USED("token", STRING, NULL, "Bearer token. With a credential it authorises the requests for tokens only."),
    USED("oauth2-server-uri", STRING, NULL, "Where tokens are asked for; unless set, <uri>/v1/oauth/tokens."),
    USED("scope", STRING, "catalog", "OAuth2 scope."),
    USED("audience", STRING, NULL, "OAuth2 audience."),
    USED("resource", STRING, NULL, "OAuth2 resource."),
    USED("token-refresh-enabled", BOOL, "true", "Whether a token is renewed before it ends: a tenth of its life, at most 5 minutes, before."),
    USED("token-exchange-enabled", BOOL, "true", "Whether a token that was given without a credential is renewed by token exchange. With a credential it is renewed by the client-credentials grant."),
    USED("token-expires-in-ms", INT, NULL, "How long the given token lives, when it does not tell itself."),
    USED("rest.auth.type", STRING, NULL, "none, basic, oauth2 or sigv4. Unless set: oauth2 with a credential or token, else none."),
    USED("rest.auth.basic.username", STRING, NULL, "User for basic."),
    USED("rest.auth.basic.password", STRING, NULL, "Password for basic."),
    USED("rest.auth.sigv4.delegate-auth-type", STRING, "oauth2", "Login beneath the AWS signature (none, basic or oauth2); it goes into the header Original-Authorization."),
    USED("rest.sigv4-enabled", BOOL, "false", "Older way to say 'rest.auth.type' = 'sigv4'."),
    USED("rest.signing-name", STRING, NULL, "Service name of AWS signatures: glue, s3tables. Unless set, by the host of 'uri', else execute-api."),
    USED("rest.signing-region", STRING, NULL, "Region of AWS signatures. Unless set, that in the host of 'uri', else client.region and what stands behind it."),
    USED("rest.access-key-id", STRING, NULL, "Access key for AWS signatures; goes before the credentials of the other AWS clients."),
    USED("rest.secret-access-key", STRING, NULL, "Secret key that goes with rest.access-key-id."),
    USED("rest.session-token", STRING, NULL, "Session token that goes with rest.access-key-id, if they are temporary."),
    USED("header.*", STRING, NULL, "header.<name> = <value>: a header of each request. header.X-Iceberg-Access-Delegation is 'vended-credentials' unless the script has its own s3.access-key-id or requests are signed for AWS; '' takes it away."),
    USED("rest-page-size", INT, NULL, "How many names of a list are asked for at a time; unless set, the server decides."),
    USED("namespace-separator", STRING, "%1F", "What stands between the levels of a namespace in paths, encoded. Servers say it themselves."),
    USED("rest.client.connection-timeout-ms", INT, "10000", "Time-out of a connection attempt."),
    USED("rest.client.socket-timeout-ms", INT, "60000", "How long no byte may come or go."),
    USED("rest.client.max-retries", INT, "5", "How often a request without effect is tried again, within 5 seconds. Commits are never sent twice."),
    USED("rest.client.proxy.hostname", STRING, NULL, "Proxy. Else HTTPS_PROXY, HTTP_PROXY and NO_PROXY."),
    USED("rest.client.proxy.port", INT, NULL, "Its port."),
    USED("rest.client.proxy.username", STRING, NULL, "Its user."),
    USED("rest.client.proxy.password", STRING, NULL, "Its password."),
    USED("rest.client.user-agent", STRING, NULL, "The header User-Agent."),
    USED("client.refresh-credentials-endpoint", STRING, NULL, "Where credentials of a table's store are renewed; servers say it themselves. Only a place on the catalog's own server counts."),
    USED("client.refresh-credentials-enabled", BOOL, "true", "Whether credentials of a table's store are renewed."),
    USED("ssl.cabundle", STRING, NULL, "File of certificates (PEM) to trust. Else SSL_CERT_FILE, the system's."),
    USED("ssl.client.cert", STRING, NULL, "File of the client's certificate (PEM)."),
    USED("ssl.client.key", STRING, NULL, "File of its key."),
    IDLE("rest.client.max-connections", "connections are pooled by frazil's own HTTP client"),
    IDLE("rest.client.connections-per-route", "connections are pooled by frazil's own HTTP client"),
    NO("rest.client.tls.configurer-impl", "it names a class of Java; ssl.cabundle, ssl.client.cert and ssl.client.key say what to trust and to show"),
    IDLE("rest-metrics-reporting-enabled", "scans and commits are not reported to the catalog; see the metrics of frazil"),
    IDLE("view-endpoints-supported", VIEWS),
    IDLE("snapshot-loading-mode", "positions are looked for in the table's lineage, so all snapshots are always loaded"),
    IDLE("scan-planning-mode", PLANS),
    IDLE("rest-scan-planning-enabled", PLANS),
    IDLE("rest-scan-planning.*", PLANS),
    IDLE("rest-table-cache.*", CACHE),
    IDLE("auth.session-timeout-ms", "there is one login a catalog"),
    IDLE("rest.remote-signing.*", "requests to S3 are signed here"),
    IDLE("signer.*", "requests to S3 are signed here"),
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};
const fz_option *cat_rest_options(void) { return options; }
