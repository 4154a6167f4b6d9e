#!/usr/bin/env bash
# interop/glue.sh: frazil, PyIceberg and DuckDB at the same tables of AWS Glue and of S3 Tables (moto plays both, and S3). Run with no arguments.
# Environment: FRAZIL_BIN (build/frazil), FRAZIL_TEST_DIR, FRAZIL_MOTO_PORT (17600); FRAZIL_INTEROP_VERIFY=1: Java's GlueCatalog too.
set -uo pipefail
cd "$(dirname "$0")/../.."
own=$(mktemp -d "${FRAZIL_TEST_DIR:-/tmp}/frazil-glue.XXXXXX")
port=${FRAZIL_MOTO_PORT:-17600}
trap 'bash test/peers/moto.sh down "$own/moto" >/dev/null; rm -rf "$own"' EXIT
mkdir "$own/moto"
bash test/peers/moto.sh up "$own/moto" "$port" || exit 1
bash test/peers/moto.sh bucket "$own/moto" lake || exit 1
if [ -n "${FRAZIL_INTEROP_VERIFY:-}" ]; then
    FRAZIL_JARS=$(bash test/peers/readers.sh jars) || exit 1
    export FRAZIL_JARS
fi
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true S3_ENDPOINT=http://127.0.0.1:$port
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE
FRAZIL_TEST_DIR=$own bash test/peers/readers.sh python test/interop/glue.py "$@"
