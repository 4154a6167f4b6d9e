#!/usr/bin/env bash
# Versity S3 Gateway 1.8.0 over a directory: an S3 server that verifies signatures (SigV4), the payload's hash, the region and the clock.
#   s3verify.sh up DIR [PORT]            PORT: default 25500; objects in DIR/data outlive down. The endpoint is written to DIR/url
#   s3verify.sh down DIR
#   s3verify.sh bucket DIR NAME
#   s3verify.sh env DIR                  prints S3_ENDPOINT and the AWS_* variables to reach it, to be eval'ed
# At up: S3_KEY (verifier), S3_SECRET (secret+with/odd=characters), AWS_REGION (us-east-1: the only one it takes);
#        S3_TLS=1: https, with a certificate for localhost and 127.0.0.1 that DIR/ca.pem signed;
#        S3_KEEPALIVE=1: connections stay open after an answer (by default it closes them).
# Objects are files: of "a" and "a/b" only one can exist, "//" and ".." in keys are folded. DIR/s3.log has a line for each request.
. "$(dirname "$0")/lib.sh"

BINARY=$CACHE/versitygw-1.8.0/bin/versitygw
fetch() { # only the program stays: modules and objects of the build would be 2 GB
    GOPATH=$PWD/modules GOCACHE=$PWD/objects GOBIN=$PWD/bin GOFLAGS=-modcacherw go install -trimpath -ldflags='-s -w' github.com/versity/versitygw/cmd/versitygw@v1.8.0
    rm -rf modules objects
}

certificates() { # an authority of our own: ca.pem; server.pem is the server's
    local new=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    (
        cd "$DIR"
        umask 077
        openssl req -x509 "${new[@]}" -days 30 -subj '/CN=authority of the tests' -keyout ca.key -out ca.pem
        openssl req "${new[@]}" -subj /CN=localhost -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile server.ext -out server.pem
    ) 2>"$DIR/openssl.log" || { cat "$DIR/openssl.log" >&2; fail "no certificate could be made"; }
}

settings() { # sets KEY SECRET REGION URL of the running server, and how curl trusts it
    { read -r KEY; read -r SECRET; read -r REGION; } <"$DIR/credentials"
    URL=$(cat "$DIR/url")
    TRUST=()
    [ ! -e "$DIR/ca.pem" ] || TRUST=(--cacert "$DIR/ca.pem")
}

answers() { [ "$(curl -sk -o "$DIR/probe.log" -w '%{http_code}' "$URL/")" = 403 ]; }

up() {
    if alive s3; then note "runs already"; return; fi
    modern_go
    cached versitygw-1.8.0 fetch
    take_port "${1:-}" 25500
    local region=${AWS_REGION:-us-east-1} key=${S3_KEY:-verifier} secret=${S3_SECRET:-secret+with/odd=characters} options
    options=(--port "127.0.0.1:$PORT" --region "$region")
    [ -z "${S3_KEEPALIVE:-}" ] || options+=(--keep-alive)
    rm -f "$DIR/ca.pem"
    echo "http://127.0.0.1:$PORT" >"$DIR/url"
    if [ -n "${S3_TLS:-}" ]; then
        program openssl openssl
        certificates
        options+=(--cert "$DIR/server.pem" --key "$DIR/server.key")
        echo "https://127.0.0.1:$PORT" >"$DIR/url"
    fi
    (umask 077; printf '%s\n' "$key" "$secret" "$region" >"$DIR/credentials")
    settings
    mkdir -p "$DIR/data"
    ROOT_ACCESS_KEY=$key ROOT_SECRET_KEY=$secret launch s3 "$BINARY" "${options[@]}" posix "$DIR/data"
    await s3 60 answers
}

bucket() {
    local nothing
    nothing=$(sha256sum </dev/null | cut -d' ' -f1)
    settings
    curl -s --fail-with-body "${TRUST[@]}" -o "$DIR/bucket.log" --aws-sigv4 "aws:amz:$REGION:s3" -u "$KEY:$SECRET" -H "x-amz-content-sha256: $nothing" -X PUT "$URL/$1" ||
        grep -q BucketAlreadyOwnedByYou "$DIR/bucket.log" || { cat "$DIR/bucket.log" >&2; fail "bucket $1 could not be made"; }
}

env_of() {
    settings
    printf 'export %s=%q\n' S3_ENDPOINT "$URL" AWS_ACCESS_KEY_ID "$KEY" AWS_SECRET_ACCESS_KEY "$SECRET" AWS_REGION "$REGION"
    [ ! -e "$DIR/ca.pem" ] || printf 'export %s=%q\n' AWS_CA_BUNDLE "$DIR/ca.pem"
}

[ $# -ge 2 ] || help
command=$1
home "$2"
shift 2
program curl curl
case $command in
up) up "$@" ;;
down) halt s3 ;;
bucket) [ $# = 1 ] || help; need_up s3; bucket "$1" ;;
env) need_up s3; env_of ;;
*) help ;;
esac
