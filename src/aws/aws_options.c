/* Options of the AWS clients, by the names of Iceberg's AwsClientProperties, AwsProperties and HttpClientProperties (1.10), and PyIceberg's where Java
 * has none. */
#include "aws/aws.h"

#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
#define IDLE(name, why) {name, FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, why}
#define NO(name, why) {name, FZ_OPT_STRING, FZ_OPT_REFUSED, NULL, NULL, NULL, why}
#define POOL_WHY "connections are pooled and closed by frazil's own HTTP client"

static const fz_option options[] = {
    USED("client.region", STRING, NULL, "Region of all AWS clients. Else AWS_REGION, AWS_DEFAULT_REGION, the profile's, the instance's."),
    USED("client.factory", STRING, NULL, "Java's client factory: DefaultAwsClientFactory, or AssumeRoleAwsClientFactory, which demands client.assume-role.arn and client.assume-role.region."),
    USED("client.credentials-provider", STRING, NULL, "Java's credentials provider: one of the AWS SDK for Java v2 (Default-, EnvironmentVariable-, Profile-, WebIdentityTokenFile-, Container-, InstanceProfileCredentialsProvider) stands for the link of the same name."),
    USED("client.assume-role.arn", STRING, NULL, "Role that is assumed with the credentials found. Unlike in Java, no client.factory is needed for it."),
    USED("client.assume-role.region", STRING, NULL, "Region of all clients but STS, when a role is assumed."),
    USED("client.assume-role.external-id", STRING, NULL, "External id that the role demands."),
    USED("client.assume-role.session-name", STRING, NULL, "Name of the role's session; unless set, one beginning with frazil-."),
    USED("client.assume-role.timeout-sec", INT, "3600", "How long the role's credentials live before they are renewed: 900 to 43200 seconds."),
    USED("client.assume-role.tags.*", STRING, NULL, "Tags of the role's session: client.assume-role.tags.<key> = <value>."),
    USED("client.access-key-id", STRING, NULL, "Access key, as PyIceberg has it; goes before the environment. Better not in a script: use the environment or a profile."),
    USED("client.secret-access-key", STRING, NULL, "Secret key that goes with client.access-key-id."),
    USED("client.session-token", STRING, NULL, "Session token that goes with client.access-key-id, if they are temporary."),
    USED("client.profile-name", STRING, NULL, "Profile, as PyIceberg has it; goes before the environment."),
    USED("http-client.type", STRING, "apache", "apache or urlconnection: whose time-outs are meant."),
    USED("http-client.proxy-endpoint", STRING, NULL, "URL of the proxy. Else HTTPS_PROXY, HTTP_PROXY and NO_PROXY."),
    USED("http-client.apache.connection-timeout-ms", INT, "10000", "Time-out of a connection attempt."),
    USED("http-client.apache.socket-timeout-ms", INT, "30000", "How long no byte may come or go."),
    USED("http-client.urlconnection.connection-timeout-ms", INT, "10000", "The same with http-client.type = urlconnection."),
    USED("http-client.urlconnection.socket-timeout-ms", INT, "30000", "The same with http-client.type = urlconnection."),
    IDLE("http-client.apache.connection-acquisition-timeout-ms", POOL_WHY),
    IDLE("http-client.apache.connection-max-idle-time-ms", POOL_WHY),
    IDLE("http-client.apache.connection-time-to-live-ms", POOL_WHY),
    IDLE("http-client.apache.expect-continue-enabled", "no request waits for 100 Continue"),
    IDLE("http-client.apache.max-connections", POOL_WHY),
    IDLE("http-client.apache.tcp-keep-alive-enabled", POOL_WHY),
    IDLE("http-client.apache.use-idle-connection-reaper-enabled", POOL_WHY),
    IDLE("client.credentials-provider.*", "they are arguments of a Java class"),
    IDLE("client.refresh-credentials-endpoint", "the REST catalog renews the credentials that it vended by its own endpoint"),
    IDLE("client.refresh-credentials-enabled", "the REST catalog renews the credentials that it vended by its own endpoint"),
    NO("client.role-arn", "write client.assume-role.arn"),
    NO("client.role-session-name", "write client.assume-role.session-name"),
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};

const fz_option *aws_options(void) { return options; }
