#!/usr/bin/env bash
# Clients of OTLP that others wrote: OpenTelemetry's SDKs for Python and JavaScript, telemetrygen (Go).
#   otlp_clients.sh up                                      fetches all of them
#   otlp_clients.sh python http|grpc ENDPOINT COUNT NAME [gzip] [TOKEN] [CA]    protobuf; http: URL with /v1/logs, grpc: http://HOST:PORT or https://HOST:PORT
#   otlp_clients.sh js URL COUNT NAME                       OTLP/HTTP JSON
#   otlp_clients.sh go ARGUMENT...                          telemetrygen's own
#   otlp_clients.sh packages                                the directory of the Python packages, grpc among them
# Python and JavaScript send COUNT records "message <i> é" with the attributes n = i, who = NAME.
. "$(dirname "$0")/lib.sh"
PROGRAMS=$PEERS/../e2e/otlp

fetch_python() {
    python3 -m venv venv
    venv/bin/pip install --quiet opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2 opentelemetry-exporter-otlp-proto-grpc==1.45.2
}
fetch_js() {
    npm init -y
    npm install --no-audit --no-fund @opentelemetry/exporter-logs-otlp-http@0.223.1 @opentelemetry/sdk-logs@0.223.1
}
fetch_go() {
    GOPATH=$PWD/go GOBIN=$PWD GOCACHE=$PWD/build GOFLAGS=-modcacherw go install -trimpath -ldflags='-s -w' github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen@v0.161.0
    rm -rf go build
}
with_python() { cached otlp-python-1 fetch_python; }
with_js() {
    program npm npm
    cached otlp-js-1 fetch_js
}
with_go() {
    modern_go
    cached otlp-go-1 fetch_go
}

case ${1:-} in
up) with_python && with_js && with_go ;;
python)
    with_python
    exec "$CACHE/otlp-python-1/venv/bin/python3" "$PROGRAMS/send.py" "${@:2}"
    ;;
packages)
    with_python
    "$CACHE/otlp-python-1/venv/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
    ;;
js)
    with_js
    cp "$PROGRAMS/send.mjs" "$CACHE/otlp-js-1/otlp.mjs" # modules are looked for beside the program
    exec node "$CACHE/otlp-js-1/otlp.mjs" "${@:2}"
    ;;
go)
    with_go
    exec "$CACHE/otlp-go-1/telemetrygen" "${@:2}"
    ;;
*) help ;;
esac
