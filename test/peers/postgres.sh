#!/usr/bin/env bash
# PostgreSQL 15 of Debian, a server of one's own.
#   postgres.sh up DIR [PORT]            PORT: default 25432, on 127.0.0.1; what it holds is lost at down
#   postgres.sh down DIR
#   postgres.sh sql DIR SQL [DATABASE]   rows without headings
# User frazil, password frazil, database catalog; TCP asks for the password (SCRAM), the socket (its directory is written to DIR/socket) does not.
. "$(dirname "$0")/lib.sh"

BIN=/usr/lib/postgresql/15/bin

# the server refuses to run as root
AS_SERVER=(env)
[ "$(id -u)" != 0 ] || AS_SERVER=(setpriv --reuid=postgres --regid=postgres --init-groups)

install_server() {
    [ ! -x $BIN/postgres ] || return 0
    [ "$(id -u)" = 0 ] || fail "package postgresql-15 is missing"
    note "installing package postgresql-15"
    # no server of the package's own
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends install postgresql-15; } >/dev/null 2>&1; then
        fail "package postgresql-15 cannot be installed"
    fi
}

psql_of() { "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$(cat "$DIR/socket")" -p "$PORT" "$@"; }

up() {
    local place
    if alive postgres; then note "runs already"; return; fi
    install_server
    take_port "${1:-}" 25432
    # DIR may be closed to the server's user, and long paths do not go into a socket's address
    place=$(mktemp -d /tmp/frazil-postgres.XXXXXX)
    [ "$(id -u)" != 0 ] || chown postgres:postgres "$place"
    chmod 755 "$place"
    echo "$place" >"$DIR/socket"
    cd "$place"
    "${AS_SERVER[@]}" "$BIN/initdb" -D "$place/data" -U postgres -E UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 --no-sync >"$DIR/initdb.log" 2>&1 ||
        { tail "$DIR/initdb.log" >&2; fail "the database could not be made"; }
    launch postgres "${AS_SERVER[@]}" "$BIN/postgres" -D "$place/data" -p "$PORT" -c listen_addresses=127.0.0.1 -c "unix_socket_directories=$place" -c fsync=off -c max_connections=40 -c shared_buffers=32MB
    await postgres 30 "$BIN/pg_isready" -q -h "$place" -p "$PORT"
    psql_of -U postgres -d postgres -c "CREATE ROLE frazil LOGIN PASSWORD 'frazil'" -c "CREATE DATABASE catalog OWNER frazil"
}

down() {
    halt postgres INT # without waiting for its clients
    [ ! -r "$DIR/socket" ] || rm -rf "$(cat "$DIR/socket")" "$DIR/socket"
}

[ $# -ge 2 ] || help
command=$1
home "$2"
shift 2
case $command in
up) up "$@" ;;
down) down ;;
sql) need_up postgres; [ $# -ge 1 ] || help; psql_of -U frazil -d "${2:-catalog}" -c "$1" ;;
*) help ;;
esac
