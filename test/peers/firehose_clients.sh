#!/usr/bin/env bash
# Clients of the Amazon Data Firehose API: boto3 (Python) and @aws-sdk/client-firehose (JavaScript). Both sign with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
#   firehose_clients.sh up                               fetches them
#   firehose_clients.sh python PROGRAM ARGS...           python3 with boto3
#   firehose_clients.sh js URL STREAM COUNT PREFIX       COUNT records {"k": "PREFIX-<i>", "n": <i>} in batches of 100; prints how many failed
. "$(dirname "$0")/lib.sh"
PROGRAMS=$PEERS/../e2e/firehose

fetch_python() {
    python3 -m venv venv
    venv/bin/pip install --quiet boto3==1.44.8
}
fetch_js() {
    npm init -y
    npm install --no-audit --no-fund @aws-sdk/client-firehose@3.1169.0
}
with_python() { cached firehose-python-1 fetch_python; }
with_js() {
    program npm npm
    cached firehose-js-1 fetch_js
}

case ${1:-} in
up) with_python && with_js ;;
python)
    with_python
    exec "$CACHE/firehose-python-1/venv/bin/python3" "${@:2}"
    ;;
js)
    with_js
    cp "$PROGRAMS/send.mjs" "$CACHE/firehose-js-1/" # modules are looked for beside the program
    exec node "$CACHE/firehose-js-1/send.mjs" "${@:2}"
    ;;
*) help ;;
esac
