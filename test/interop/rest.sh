#!/usr/bin/env bash
# interop/rest.sh: frazil and PyIceberg at the same tables of Iceberg REST catalogs: Apache's fixture on local files and on S3 (moto), Nessie with logins on S3, and
# strict fakes of S3 Tables' endpoint and of credential vending. Run with names of cases or without.
# Environment: FRAZIL_BIN (build/frazil), FRAZIL_TEST_DIR, FRAZIL_REST_PORT (17710; that and the next seven). Without Java 21 the cases with Nessie are left out.
set -uo pipefail
cd "$(dirname "$0")/../.."
own=$(mktemp -d "${FRAZIL_TEST_DIR:-/tmp}/frazil-rest.XXXXXX")
port=${FRAZIL_REST_PORT:-17710}
down() {
    bash test/peers/iceberg_rest.sh down "$own/fixture" >/dev/null
    bash test/peers/iceberg_rest.sh down "$own/fixture-s3" >/dev/null
    bash test/peers/iceberg_rest.sh down "$own/nessie" >/dev/null
    bash test/peers/kafka.sh down "$own/kafka" >/dev/null
    bash test/peers/moto.sh down "$own/moto" >/dev/null
    [ -n "${KEEP:-}" ] || rm -rf "$own"
}
trap down EXIT
mkdir "$own/moto" "$own/fixture" "$own/fixture-s3" "$own/nessie" "$own/kafka"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true S3_ENDPOINT=http://127.0.0.1:$((port + 4))
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE
bash test/peers/moto.sh up "$own/moto" $((port + 4)) && bash test/peers/moto.sh bucket "$own/moto" lake || exit 1
bash test/peers/iceberg_rest.sh up "$own/fixture" "$port" && bash test/peers/iceberg_rest.sh up "$own/fixture-s3" $((port + 3)) s3://lake/fixture || exit 1
KAFKA_HEAP=384m bash test/peers/kafka.sh up "$own/kafka" $((port + 5)) || exit 1
REST_SERVER=nessie REST_AUTH=1 bash test/peers/iceberg_rest.sh up "$own/nessie" $((port + 1)) s3://lake/nessie
case $? in 0) ;; 77) rm -f "$own/nessie/uri" ;; *) exit 1 ;; esac
FRAZIL_TEST_DIR=$own bash test/peers/readers.sh python test/interop/rest.py "$@"
