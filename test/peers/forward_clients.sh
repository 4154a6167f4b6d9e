#!/usr/bin/env bash
# Clients of the forward protocol that others wrote: fluent-logger (Python), @fluent-org/logger (JavaScript), fluent-logger-golang (Go).
#   forward_clients.sh up                                         fetches all of them
#   forward_clients.sh python HOST PORT COUNT TAG                 Message mode, EventTime, no answers
#   forward_clients.sh js HOST PORT COUNT TAG MODE [KEY [USER PASSWORD]]    MODE: Message, Forward, PackedForward, CompressedPackedForward; waits for its answers; the handshake with KEY
#                                                                 FORWARD_CA, FORWARD_CERT, FORWARD_CERT_KEY: over TLS
#   forward_clients.sh go HOST PORT COUNT TAG [tls]               Message mode, EventTime; waits for its answers; TLS by SSL_CERT_FILE
# Each sends COUNT events {"message": "m <i> é", "n": <i>} with the tag TAG.
. "$(dirname "$0")/lib.sh"
PROGRAMS=$PEERS/../e2e/forward

fetch_python() {
    python3 -m venv venv
    venv/bin/pip install --quiet fluent-logger==0.11.1
}
fetch_js() {
    npm init -y
    npm install --no-audit --no-fund @fluent-org/logger@1.0.10
}
fetch_go() {
    export GOPATH=$PWD/go GOCACHE=$PWD/build GOFLAGS=-modcacherw
    mkdir src
    cp "$FORWARD_GO" src/main.go
    (cd src && go mod init send && go get github.com/fluent/fluent-logger-golang/fluent@v1.10.1 && go build -o ../send .)
    rm -rf go build src
}
with_python() { cached forward-python-1 fetch_python; }
with_js() {
    program npm npm
    cached forward-js-1 fetch_js
}
with_go() {
    program go golang-go
    FORWARD_GO=$PROGRAMS/send.go cached forward-go-2 fetch_go
}

case ${1:-} in
up) with_python && with_js && with_go ;;
python)
    with_python
    exec "$CACHE/forward-python-1/venv/bin/python3" "$PROGRAMS/send.py" "${@:2}"
    ;;
js)
    with_js
    cp "$PROGRAMS/send.mjs" "$CACHE/forward-js-1/" # modules are looked for beside the program
    exec node "$CACHE/forward-js-1/send.mjs" "${@:2}"
    ;;
go)
    with_go
    exec "$CACHE/forward-go-2/send" "${@:2}"
    ;;
*) help ;;
esac
