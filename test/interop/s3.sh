#!/usr/bin/env bash
# s3.sh TOOL DIR: frazil's S3 store against servers that others wrote, judged by boto3: a gateway that verifies signatures (plain, and over TLS with an
# authority of its own), and moto (session tokens, keys with "//" and "..", tags). TOOL: the built test/tools/store_tool; DIR: for peers.
# FRAZIL_S3_LARGE=BYTES: size of the large upload without TLS (default 200 MB; 5368709120 in the long run, which needs 15 GB in DIR and TMPDIR for a while); FRAZIL_S3_PORT: first of three ports (default 25600).
set -euo pipefail
cd "$(dirname "$0")/../.."
TOOL=$(realpath "$1")
DIR=$2
PEERS=$PWD/test/peers
PORT=${FRAZIL_S3_PORT:-25600}
mkdir -p "$DIR"
up=()
trap 'for p in "${up[@]}"; do bash "$PEERS/${p%%:*}" down "${p#*:}" >/dev/null 2>&1; done' EXIT
bash "$PEERS/moto.sh" up "$DIR/moto" $((PORT))
up+=("moto.sh:$DIR/moto")
PYTHON=${FRAZIL_CACHE:-$HOME/.cache/frazil}/moto-5.2.5/venv/bin/python3 # moto comes with boto3
code=0

against() { # against NAME: S3_ENDPOINT and the AWS_* are set
    echo "-- $1"
    "$PYTHON" test/interop/s3_store.py "$TOOL" "$1" logs || code=1
}
verifier() { # verifier NAME PORT: a gateway of its own each time, since it keeps its settings
    bash "$PEERS/s3verify.sh" up "$DIR/$1" "$2"
    up+=("s3verify.sh:$DIR/$1")
    bash "$PEERS/s3verify.sh" bucket "$DIR/$1" logs
    eval "$(bash "$PEERS/s3verify.sh" env "$DIR/$1")"
    against "$1"
}

bash "$PEERS/moto.sh" bucket "$DIR/moto" logs
(
    code=0
    export S3_ENDPOINT=http://127.0.0.1:$PORT AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=secretive AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
    FRAZIL_S3_LARGE=50000000 against moto # it keeps all in memory
    exit $code
) || code=1
export AWS_DEFAULT_REGION=us-east-1
verifier verifier $((PORT + 1))
unset FRAZIL_S3_LARGE
S3_TLS=1 S3_KEEPALIVE=1 verifier verifier-tls $((PORT + 2))
exit $code
