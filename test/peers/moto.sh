#!/usr/bin/env bash
# moto 5.2.5: AWS in memory (S3, Glue, S3 Tables, STS, Lake Formation, ...), one endpoint http://127.0.0.1:PORT for all of them.
#   moto.sh up DIR [PORT]                PORT: default 25000; what it knows is lost at down
#   moto.sh down DIR
#   moto.sh reset DIR                    forgets everything and stays up
#   moto.sh bucket DIR NAME              makes an S3 bucket
# It takes any credentials and checks neither signatures nor checksums: s3verify.sh does. Where the plain moto would let two writers overwrite each
# other's commits, moto_strict.py makes it refuse as AWS does. DIR/moto.log has a line for each request.
. "$(dirname "$0")/lib.sh"

VENV=$CACHE/moto-5.2.5/venv
fetch() {
    python3 -m venv venv
    venv/bin/pip install --quiet 'moto[server]==5.2.5'
}

up() {
    if alive moto; then note "runs already"; return; fi
    cached moto-5.2.5 fetch
    take_port "${1:-}" 25000
    # else S3 Tables knows only some of the regions
    export MOTO_ALLOW_NONEXISTENT_REGION=true
    launch moto "$VENV/bin/python3" "$PEERS/moto_strict.py" -H 127.0.0.1 -p "$PORT"
    await moto 60 open_port "$PORT"
}

[ $# -ge 2 ] || help
command=$1
home "$2"
shift 2
program curl curl
case $command in
up) up "$@" ;;
down) halt moto ;;
reset) need_up moto; curl -sf -o "$DIR/reset.log" -X POST "http://127.0.0.1:$PORT/moto-api/reset" || fail "moto does not forget" ;;
bucket)
    need_up moto
    [ $# = 1 ] || help
    # moto believes the access key in the header; any will do
    curl -sf -o "$DIR/bucket.log" -X PUT -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request' \
        "http://127.0.0.1:$PORT/$1" || fail "bucket $1 could not be made"
    ;;
*) help ;;
esac
