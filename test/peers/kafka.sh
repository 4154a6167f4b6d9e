#!/usr/bin/env bash
# A real Kafka 4.1.1 broker (one node, KRaft) for tests.
#   kafka.sh up DIR [PORT]               PORT (default 29092) and the next two; data in DIR outlives down. PORT + 2 wants a login:
#                                        SASL_PLAINTEXT, PLAIN, user reader, password "reader's secret"
#   kafka.sh down DIR
#   kafka.sh topic DIR NAME PARTITIONS [CONFIG=VALUE...]
#   kafka.sh produce DIR TOPIC FILE [PARTITION|- [KCAT-OPTION...]]   a record a line; -: any partition
#   kafka.sh delete-records DIR TOPIC PARTITION OFFSET               the log begins at OFFSET then (-1: at its end)
#   kafka.sh offsets DIR TOPIC           lines "TOPIC PARTITION FIRST END"
#   kafka.sh group-offsets DIR GROUP     lines "TOPIC PARTITION OFFSET"
#   kafka.sh txn DIR TOPIC [PARTITION] [commit|abort|plain|open...]  a transaction each; see KafkaSteps.java
#   kafka.sh tool DIR CLASS ARGUMENT...  a main class of the broker's jars
#   kafka.sh classes DIR NAME            compiles NAME.java of this directory; prints where, for KAFKA_CLASSES
# At up: KAFKA_HEAP (Java heap of the broker, 1g), KAFKA_CONFIG (more lines of server.properties), KAFKA_CLASSES (more of
# its class path).
. "$(dirname "$0")/lib.sh"

jars() { maven org.apache.kafka:kafka_2.13:4.1.1 org.apache.kafka:kafka-tools:4.1.1 org.apache.logging.log4j:log4j-slf4j-impl:2.24.3; }
JARS=$CACHE/kafka-4.1.1

run_java() { java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Dlog4j2.configurationFile=$DIR/log.xml" -cp "$JARS/*${KAFKA_CLASSES:+:$KAFKA_CLASSES}" "$@"; }
admin() { local class=$1; shift; run_java "org.apache.kafka.tools.$class" --bootstrap-server "127.0.0.1:$PORT" "$@"; }

write_config() {
    local controller=$((PORT + 1)) login=$((PORT + 2)) key
    echo '<Configuration><Appenders><Console name="e" target="SYSTEM_ERR"><PatternLayout pattern="%d %p %c{1}: %m%n"/></Console></Appenders><Loggers><Root level="WARN"><AppenderRef ref="e"/></Root></Loggers></Configuration>' >"$DIR/log.xml"
    {
        echo "node.id=1"
        echo "process.roles=controller,broker"
        echo "listeners=CLIENTS://127.0.0.1:$PORT,LOGIN://127.0.0.1:$login,VOTES://127.0.0.1:$controller"
        echo "advertised.listeners=CLIENTS://127.0.0.1:$PORT,LOGIN://127.0.0.1:$login"
        echo "listener.security.protocol.map=CLIENTS:PLAINTEXT,LOGIN:SASL_PLAINTEXT,VOTES:PLAINTEXT"
        echo "listener.name.login.sasl.enabled.mechanisms=PLAIN"
        echo "listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_reader=\"reader's secret\";"
        echo "inter.broker.listener.name=CLIENTS"
        echo "controller.listener.names=VOTES"
        echo "controller.quorum.voters=1@127.0.0.1:$controller"
        echo "log.dirs=$DIR/data"
        [[ ${KAFKA_CONFIG:-} == *auto.create.topics.enable* ]] || echo "auto.create.topics.enable=false"
        echo "group.initial.rebalance.delay.ms=0"
        # one node: internal topics cannot have more than one copy
        for key in offsets.topic.replication.factor transaction.state.log.replication.factor transaction.state.log.min.isr; do echo "$key=1"; done
        for key in offsets.topic.num.partitions transaction.state.log.num.partitions; do echo "$key=4"; done
        [ -z "${KAFKA_CONFIG:-}" ] || echo "$KAFKA_CONFIG"
    } >"$DIR/server.properties"
}

up() {
    if alive kafka; then note "runs already"; return; fi
    program mvn maven
    cached kafka-4.1.1 jars
    take_port "${1:-}" 29092
    write_config
    mkdir -p "$DIR/tmp"
    if [ ! -e "$DIR/data/meta.properties" ]; then
        run_java kafka.tools.StorageTool format -c "$DIR/server.properties" -t "$(run_java kafka.tools.StorageTool random-uuid)" >"$DIR/format.log" 2>&1 ||
            { cat "$DIR/format.log" >&2; fail "the data directory could not be formatted"; }
    fi
    launch kafka java "-Xmx${KAFKA_HEAP:-1g}" "-Djava.io.tmpdir=$DIR/tmp" "-Dlog4j2.configurationFile=$DIR/log.xml" -cp "$JARS/*${KAFKA_CLASSES:+:$KAFKA_CLASSES}" kafka.Kafka "$DIR/server.properties"
    await kafka 90 kcat -L -m 2 -b "127.0.0.1:$PORT"
}

topic() {
    local name=$1 partitions=$2
    shift 2
    admin TopicCommand --create --topic "$name" --partitions "$partitions" --replication-factor 1 ${@/#/--config=} >"$DIR/tool.log" 2>&1 ||
        { cat "$DIR/tool.log" >&2; fail "topic $name could not be made"; }
}

produce() {
    local topic=$1 file=$2 where=()
    shift 2
    [ "${1:--}" = - ] || where=(-p "$1")
    [ $# = 0 ] || shift
    kcat -P -b "127.0.0.1:$PORT" -t "$topic" "${where[@]}" -X linger.ms=50 -X batch.num.messages=10000 -X queue.buffering.max.messages=200000 \
        -X sticky.partitioning.linger.ms=0 "$@" -l "$file"
}

delete_records() {
    echo "{\"version\": 1, \"partitions\": [{\"topic\": \"$1\", \"partition\": $2, \"offset\": $3}]}" >"$DIR/delete.json"
    admin DeleteRecordsCommand --offset-json-file "$DIR/delete.json" >"$DIR/tool.log" 2>&1 || true
    grep -q low_watermark "$DIR/tool.log" || { cat "$DIR/tool.log" >&2; fail "records were not deleted"; }
}

offsets() {
    join -j 1 <(at -2 "$1") <(at -1 "$1") | sed 's/:/ /' | sort -k2n
}
at() { admin GetOffsetShell --topic "$2" --time "$1" 2>/dev/null | sed 's/:\([^:]*\)$/ \1/' | sort; }

group_offsets() {
    admin consumer.group.ConsumerGroupCommand --group "$1" --describe --offsets >"$DIR/tool.log" 2>&1 || true
    if grep -qi '^error' "$DIR/tool.log"; then cat "$DIR/tool.log" >&2; fail "there is no group $1"; fi
    awk 'seen && $4 ~ /^[0-9]+$/ { print $2, $3, $4 } $1 == "GROUP" { seen = 1 }' "$DIR/tool.log" | sort -k1,1 -k2n
}

txn() {
    local topic=$1 partition=0 cp
    shift
    case ${1:-} in [0-9]*) partition=$1; shift ;; esac
    [ $# -gt 0 ] || set -- commit abort commit
    cp=$(java_main KafkaSteps "$JARS/*")
    java "-Dlog4j2.configurationFile=$DIR/log.xml" -cp "$cp" KafkaSteps "127.0.0.1:$PORT" "$topic" "$partition" "$@"
}

[ $# -ge 2 ] || help
command=$1
home "$2"
shift 2
program java openjdk-17-jdk-headless
program kcat kcat
case $command in
up) up "$@" ;;
down) halt kafka ;;
classes)
    program mvn maven
    cached kafka-4.1.1 jars
    made=$(java_main "$1" "$JARS/*")
    printf '%s\n' "${made%%:*}"
    ;;
topic | produce | delete-records | offsets | group-offsets | txn | tool)
    need_up kafka
    if [ "$command" = tool ]; then run_java "$@"; else "${command//-/_}" "$@"; fi
    ;;
*) help ;;
esac
