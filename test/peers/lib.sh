# What the scripts of test/peers share; sourced, not run.
#
# Programs that the tests meet (a Kafka broker, Flink, other readers of Iceberg) come through Debian's, Maven's and pip's own clients, once, into
# ${FRAZIL_CACHE:-$HOME/.cache/frazil}. A running peer owns a directory: its data, NAME.pid, NAME.log and port. Peers listen on loopback only.
# shellcheck shell=bash
set -euo pipefail
PEERS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${FRAZIL_CACHE:-$HOME/.cache/frazil}

note() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() { note "$@"; exit 1; }
help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0" >&2; exit 2; }

# program COMMAND PACKAGE: installs the Debian package if the command is not there
program() {
    type -P "$1" >/dev/null && return
    [ "$(id -u)" = 0 ] || fail "the command $1 is missing; install package $2"
    note "installing package $2"
    local try
    for try in 1 2 3; do # another apt-get may hold the lock
        { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends -o DPkg::Lock::Timeout=120 install "$2"; } >/dev/null 2>&1 && return
        sleep $((try * 5))
    done
    fail "package $2 cannot be installed"
}

# cached NAME FUNCTION: $CACHE/NAME, which FUNCTION fills (called in that directory) the first time; two processes do it once
cached() {
    local dir=$CACHE/$1 log=$CACHE/$1.log
    [ -e "$dir/ready" ] && return
    mkdir -p "$CACHE"
    exec 8>"$CACHE/$1.lock"
    flock 8
    if [ ! -e "$dir/ready" ]; then
        note "fetching $1; this happens once"
        # a child of its own, so that set -e ends it at the first step that fails; a network that stumbles is asked again
        export -f "$2" maven
        local try
        for try in 1 2 3; do
            rm -rf "$dir" && mkdir "$dir"
            if (cd "$dir" && bash -euo pipefail -c "$2") >"$log" 2>&1 8>&-; then
                touch "$dir/ready"
                break
            fi
            tail -n 20 "$log" >&2
            [ "$try" = 3 ] || { note "fetching $1 failed; again in $((try * 10)) s" && sleep $((try * 10)); }
        done
        [ -e "$dir/ready" ] || fail "$1 could not be fetched; see $log"
    fi
    exec 8>&-
}

# maven COORDINATE...: group:artifact:version with all that they need at run time, into the current directory. With :CLASSIFIER behind it: that jar alone
maven() {
    local c g a v k
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>peers</groupId><artifactId>jars</artifactId><version>1</version><dependencies>'
        for c; do
            IFS=: read -r g a v k <<<"$c"
            echo "<dependency><groupId>$g</groupId><artifactId>$a</artifactId><version>$v</version>"
            [ -z "$k" ] || echo "<classifier>$k</classifier><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
            echo '</dependency>'
        done
        echo '</dependencies></project>'
    } >pom.xml
    mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=.
}

# java_main NAME CLASSPATH: compiles NAME.java once for each state of its source; prints the classpath to run it with
java_main() {
    local out
    out=$CACHE/$1-$(cksum <"$PEERS/$1.java" | tr ' ' -)
    if [ ! -e "$out/ready" ]; then
        mkdir -p "$out"
        javac -nowarn -proc:none -cp "$2" -d "$out" "$PEERS/$1.java" >&2 || fail "$1.java does not compile"
        touch "$out/ready"
    fi
    printf '%s' "$out:$2"
}

# ---- running peers; they live in $DIR ----

home() { # home DIR: makes DIR and sets $DIR
    [ -n "${1:-}" ] || help
    mkdir -p "$1"
    DIR=$(cd "$1" && pwd)
}

# alive NAME: the process that `launch NAME` started runs (a pid that the system gave to another one does not count)
alive() {
    local pid mark
    [ -r "$DIR/$1.pid" ] || return 1
    read -r pid mark <"$DIR/$1.pid"
    [ "$(awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$pid/stat" 2>/dev/null)" = "$mark" ] && [ -n "$mark" ]
}

launch() { # launch NAME COMMAND...
    local name=$1 pid
    shift
    setsid "$@" >>"$DIR/$name.log" 2>&1 </dev/null &
    pid=$!
    echo "$pid $(awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$pid/stat")" >"$DIR/$name.pid"
}

await() { # await NAME SECONDS COMMAND...: until COMMAND succeeds
    local name=$1 tries=$(($2 * 4))
    shift 2
    while ! "$@" >/dev/null 2>&1; do
        if ! alive "$name" || [ $((tries -= 1)) -le 0 ]; then
            tail -n 20 "$DIR/$name.log" >&2
            fail "$name did not come up; see $DIR/$name.log"
        fi
        sleep 0.25
    done
}

halt() { # halt NAME [SIGNAL]: TERM unless another one is named, and KILL when 20 seconds were not enough
    local pid rest tries=100
    if alive "$1"; then
        read -r pid rest <"$DIR/$1.pid"
        kill "-${2:-TERM}" "$pid" || true
        while alive "$1" && [ $((tries -= 1)) -gt 0 ]; do sleep 0.2; done
        if alive "$1"; then kill -9 "$pid" || true; fi
    fi
    rm -f "$DIR/$1.pid"
}

open_port() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

take_port() { # take_port [PORT] DEFAULT: sets $PORT: as asked, as last time, or the default
    PORT=${1:-$(cat "$DIR/port" 2>/dev/null || echo "$2")}
    if open_port "$PORT"; then fail "port $PORT is taken"; fi
    echo "$PORT" >"$DIR/port"
}

need_up() { # need_up NAME: sets $PORT
    alive "$1" || fail "$1 does not run in $DIR"
    PORT=$(cat "$DIR/port")
}

# Where S3 and AWS's other services are, unless the environment says it already: moto.sh at its default port
aws_defaults() {
    export S3_ENDPOINT=${S3_ENDPOINT:-http://127.0.0.1:25000} AWS_REGION=${AWS_REGION:-us-east-1} \
        AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-test} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-test}
}

# modern_go: a Go in PATH that builds modules of today. Debian's (1.19) cannot read their go.mod, nor fetch the Go that they name; but a Go is a module too
fetch_go_toolchain() {
    GOPATH=$PWD/go GOFLAGS=-modcacherw go mod download "golang.org/toolchain@v0.0.1-go1.26.0.linux-$(go env GOARCH)"
    mv go/pkg/mod/golang.org/toolchain@* root
    rm -rf go
    chmod +x root/bin/* root/pkg/tool/*/*
}
modern_go() {
    program go golang-go
    [[ $(go version) =~ go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 21 ] && return
    cached go-toolchain-1.26.0 fetch_go_toolchain
    export GOROOT=$CACHE/go-toolchain-1.26.0/root PATH=$CACHE/go-toolchain-1.26.0/root/bin:$PATH
}
