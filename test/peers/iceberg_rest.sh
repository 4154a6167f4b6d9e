#!/usr/bin/env bash
# REST catalogs that were not written here: Apache Iceberg 1.10.1's own fixture, and Project Nessie 0.99.0.
#   iceberg_rest.sh up DIR [PORT [WAREHOUSE]]   PORT: default 28181; WAREHOUSE: s3://BUCKET/PATH (a bucket that exists), default DIR/warehouse
#   iceberg_rest.sh down DIR
#   iceberg_rest.sh token DIR [SECONDS]         a bearer token that is good for SECONDS (3600; below 0: it has expired)
# The address for clients is written to DIR/uri. DIR/rest.log has a line for each request.
# At up: REST_SERVER=fixture (default): over a SQL catalog in DIR/catalog.db, which outlives down. It hands out tokens and takes any or none.
#        REST_SERVER=nessie: a server made for production, in memory; /v1/config gives a prefix for all later paths; takes PORT + 1 too and
#        wants an S3 warehouse. It needs Java 21: without one `up` says so and ends with status 77.
#        REST_AUTH=1 (nessie): 401 without a good token.
#        S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION: how the server reaches the warehouse.
. "$(dirname "$0")/lib.sh"

JARS=$CACHE/iceberg-rest-1.10.1
NESSIE=$CACHE/nessie-0.99.0
aws_defaults

fetch_fixture() {
    maven org.apache.iceberg:iceberg-core:1.10.1 org.apache.iceberg:iceberg-core:1.10.1:tests org.apache.iceberg:iceberg-open-api:1.10.1:test-fixtures \
        org.apache.iceberg:iceberg-aws:1.10.1 org.apache.iceberg:iceberg-aws-bundle:1.10.1 org.eclipse.jetty:jetty-servlet:11.0.26 \
        org.apache.hadoop:hadoop-client-api:3.4.1 org.apache.hadoop:hadoop-client-runtime:3.4.1 org.xerial:sqlite-jdbc:3.50.3.0 org.slf4j:slf4j-simple:2.0.17
}
fetch_nessie() { mvn -q -B dependency:copy -Dartifact=org.projectnessie.nessie:nessie-quarkus:0.99.0:jar:runner "-DoutputDirectory=$PWD"; }

launch_fixture() { # WAREHOUSE
    local properties=(catalog-impl=org.apache.iceberg.jdbc.JdbcCatalog jdbc.schema-version=V1 "uri=jdbc:sqlite:$DIR/catalog.db" "warehouse=$1") cp
    [ -z "${REST_AUTH:-}" ] || fail "the fixture takes any token; REST_AUTH goes with REST_SERVER=nessie"
    if [[ $1 == s3://* ]]; then
        properties+=(io-impl=org.apache.iceberg.aws.s3.S3FileIO "s3.endpoint=$S3_ENDPOINT" s3.path-style-access=true "client.region=$AWS_REGION")
    fi
    cached iceberg-rest-1.10.1 fetch_fixture
    cp=$(java_main IcebergRest "$JARS/*")
    echo "http://127.0.0.1:$PORT" >"$DIR/uri"
    launch rest java -Xmx384m -XX:+UseSerialGC "-Djava.io.tmpdir=$DIR/tmp" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$cp" org.apache.iceberg.rest.IcebergRest "$PORT" "${properties[@]}"
}

# java_from VERSION: prints a java that is at least that new: of JAVA_HOME, of the path, or of a JDK beside that one
java_from() {
    local beside java version
    beside=$(dirname "$(dirname "$(dirname "$(readlink -f "$(type -P java)")")")")
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(type -P java)" "$beside"/*/bin/java /usr/lib/jvm/*/bin/java; do
        [ -x "$java" ] || continue
        version=$("$java" -version 2>&1 | sed -n '1s/.* version "\([0-9]*\).*/\1/p')
        if [ "${version:-0}" -ge "$1" ]; then echo "$java"; return; fi
    done
    return 1
}

launch_nessie() { # WAREHOUSE
    local java s3=nessie.catalog.service.s3.default-options options
    [[ $1 == s3://* ]] || fail "nessie needs a warehouse on S3"
    java=$(java_from 21) || { note "skipped: there is no Java 21 or newer for nessie"; exit 77; }
    cached nessie-0.99.0 fetch_nessie
    options=(-Dquarkus.http.host=127.0.0.1 "-Dquarkus.http.port=$PORT" -Dquarkus.http.access-log.enabled=true
        -Dquarkus.management.host=127.0.0.1 "-Dquarkus.management.port=$((PORT + 1))" -Dnessie.version.store.type=IN_MEMORY
        -Dnessie.catalog.default-warehouse=lake "-Dnessie.catalog.warehouses.lake.location=$1" "-D$s3.endpoint=$S3_ENDPOINT" "-D$s3.region=$AWS_REGION"
        "-D$s3.path-style-access=true" "-D$s3.access-key=urn:nessie-secret:quarkus:peers.key" "-Dpeers.key.name=$AWS_ACCESS_KEY_ID" "-Dpeers.key.secret=$AWS_SECRET_ACCESS_KEY")
    if [ -n "${REST_AUTH:-}" ]; then # it checks the signature of tokens by this key; no identity provider is asked
        program openssl openssl
        (umask 077; openssl genrsa -out "$DIR/token.key" 2048 2>"$DIR/openssl.log")
        options+=(-Dnessie.server.authentication.enabled=true -Dquarkus.oidc.tenant-enabled=true
            "-Dquarkus.oidc.public-key=$(openssl rsa -in "$DIR/token.key" -pubout -outform DER 2>"$DIR/openssl.log" | base64 -w0)")
    fi
    echo "http://127.0.0.1:$PORT/iceberg" >"$DIR/uri"
    launch rest "$java" -Xmx768m "-Djava.io.tmpdir=$DIR/tmp" "${options[@]}" -jar "$NESSIE/nessie-quarkus-0.99.0-runner.jar"
}

answers() { case $(curl -s -o "$DIR/probe.log" -w '%{http_code}' "$(cat "$DIR/uri")/v1/config") in 200 | 401) ;; *) return 1 ;; esac }

up() {
    if alive rest; then note "runs already"; return; fi
    program mvn maven
    take_port "${1:-}" 28181
    mkdir -p "$DIR/tmp"
    rm -f "$DIR/token.key"
    case ${REST_SERVER:=fixture} in
    fixture | nessie) "launch_$REST_SERVER" "${2:-$DIR/warehouse}" ;;
    *) fail "REST_SERVER is fixture or nessie, not $REST_SERVER" ;;
    esac
    await rest 120 answers
}

base64url() { base64 -w0 | tr '/+' '_-' | tr -d =; }
token() { # SECONDS
    local now unsigned
    [ -e "$DIR/token.key" ] || fail "the server in $DIR asks for no token"
    now=$(date +%s)
    unsigned=$(printf '{"alg":"RS256","typ":"JWT"}' | base64url).$(printf '{"sub":"tests","iat":%d,"exp":%d}' "$now" $((now + $1)) | base64url)
    printf '%s.%s\n' "$unsigned" "$(printf %s "$unsigned" | openssl dgst -sha256 -sign "$DIR/token.key" | base64url)"
}

[ $# -ge 2 ] || help
command=$1
home "$2"
shift 2
program java openjdk-17-jdk-headless
program curl curl
case $command in
up) up "$@" ;;
down) halt rest ;;
token) need_up rest; token "${1:-3600}" ;;
*) help ;;
esac
