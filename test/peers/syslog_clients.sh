#!/usr/bin/env bash
# Syslog senders that others wrote: logger (util-linux), rsyslog, syslog-ng and its loggen. The last three are unpacked from Debian's packages, not installed: rsyslog and syslog-ng refuse to be there together.
#   syslog_clients.sh up                                             fetches them
#   syslog_clients.sh logger ARGS...                                 util-linux logger, as it is
#   syslog_clients.sh rsyslog HOST PORT tcp|udp|tls 3164|5424 FILE CA     each line of FILE, and what is appended to it; runs until it is ended. CA: for tls, else -
#   syslog_clients.sh syslog-ng HOST PORT tcp|udp|tls 3164|5424 FILE CA   the same
#   syslog_clients.sh loggen ARGS...                                 syslog-ng's load generator
. "$(dirname "$0")/lib.sh"
NAME=syslog-deb-1
DEB=$CACHE/$NAME

fetch_deb() {
    local p
    apt-get update -q
    apt-get download rsyslog rsyslog-gnutls libestr0 libfastjson4 liblognorm5 syslog-ng-core libivykis0 libnet1 libjson-c5 libpcre3 libwrap0
    for p in *.deb; do dpkg -x "$p" root; done
    rm -f ./*.deb
    ln -s root/usr/lib/*-linux-gnu lib
    ln -s root/lib/*-linux-gnu lib2
}
with_deb() {
    cached "$NAME" fetch_deb
    export LD_LIBRARY_PATH=$DEB/lib:$DEB/lib2:$DEB/root/usr/lib/syslog-ng
}

rsyslog_conf() { # HOST PORT PROTOCOL FORMAT FILE CA WORK
    local template='template="RSYSLOG_SyslogProtocol23Format" tcp_framing="octet-counted"' protocol=$3 tls=
    [ "$4" = 5424 ] || template='template="RSYSLOG_TraditionalForwardFormat"'
    [ "$3" != tls ] || protocol=tcp tls='StreamDriver="gtls" StreamDriverMode="1" StreamDriverAuthMode="anon"'
    echo "global(workDirectory=\"$7\" maxMessageSize=\"64k\" defaultNetstreamDriverCAFile=\"${6#-}\")"
    echo 'module(load="imfile" pollingInterval="1")'
    echo "input(type=\"imfile\" file=\"$5\" tag=\"app:\" severity=\"info\" facility=\"local0\" freshStartTail=\"off\" addMetadata=\"off\")"
    echo "action(type=\"omfwd\" target=\"$1\" port=\"$2\" protocol=\"$protocol\" $tls $template action.resumeRetryCount=\"-1\")"
}
syslog_ng_conf() { # HOST PORT PROTOCOL FORMAT FILE CA
    local tls='' kind=network
    [ "$3" != tls ] || tls="tls(ca-file(\"$6\") peer-verify(required-trusted))"
    [ "$4" != 5424 ] || kind=syslog
    echo '@version: 3.38'
    echo 'options { keep-hostname(yes); stats-freq(0); };'
    echo "source s { file(\"$5\" flags(no-parse) follow-freq(0.1) program-override(\"app\")); };"
    echo "destination d { $kind(\"$1\" port($2) transport(\"$3\") $tls); };"
    echo 'log { source(s); destination(d); };'
}

follow() { # rsyslog|syslog-ng HOST PORT PROTOCOL FORMAT FILE CA
    local work child
    if [ $# != 7 ] || ! [[ $4 =~ ^(tcp|udp|tls)$ && $5 =~ ^(3164|5424)$ ]]; then help; fi
    work=$(mktemp -d)
    with_deb
    if [ "$1" = rsyslog ]; then
        rsyslog_conf "${@:2}" "$work" >"$work/conf"
        set -- "$DEB/root/usr/sbin/rsyslogd" -n -f "$work/conf" -i "$work/pid" -M "$DEB/lib/rsyslog"
    else
        syslog_ng_conf "${@:2}" >"$work/conf"
        set -- "$DEB/root/usr/sbin/syslog-ng" -F -f "$work/conf" -R "$work/persist" -c "$work/ctl" -p "$work/pid" --module-path="$(echo "$DEB"/root/usr/lib/syslog-ng/3.*)"
    fi
    "$@" &
    child=$!
    trap 'kill "$child"' TERM INT
    wait "$child" || true
    wait "$child" || true # the first wait ends at the signal
    rm -rf "$work"
}

case ${1:-} in
up) with_deb ;;
logger) exec logger "${@:2}" ;;
rsyslog | syslog-ng) follow "$@" ;;
loggen)
    with_deb
    SYSLOGNG_PREFIX=$DEB/root/usr exec "$DEB/root/usr/bin/loggen" "${@:2}"
    ;;
*) help ;;
esac
