#!/usr/bin/env bash
# A real Flink 2.0.1 session cluster (one JobManager, one TaskManager) with the Kafka and Iceberg connectors, to compare with.
#   flink.sh up DIR [PORT]                REST port (default 28081); the next four ports are taken too
#   flink.sh down DIR
#   flink.sh sql DIR FILE.sql [nowait]    runs a script and waits for its jobs, or leaves them running; prints "job ID"
#   flink.sh cpu DIR                      lines "jobmanager|taskmanager CPU_SECONDS PEAK_KB"
#   flink.sh cli DIR ARGUMENT...          Flink's command line: list, cancel JOB, stop -p PATH JOB...
# At up: TM_MEMORY (2500m), JM_MEMORY (1600m), SLOTS (4), CHECKPOINT_INTERVAL (10s), FLINK_CONFIG (more lines of config.yaml).
. "$(dirname "$0")/lib.sh"

HERE=$CACHE/flink-2.0.1
export AWS_REGION=${AWS_REGION:-us-east-1} AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-test} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-test}

# Flink's own jars come in the source package of PyFlink's libraries; the connectors from Maven, as single jars.
fetch() {
    local jar
    python3 -m venv pip
    pip/bin/pip download --quiet --no-deps --no-binary :all: --dest . apache-flink-libraries==2.0.1
    tar -xzf apache_flink_libraries-2.0.1.tar.gz --strip-components=2 --wildcards '*/deps/lib/*' '*/deps/bin/*' '*/deps/plugins/*'
    for jar in org.apache.flink:flink-sql-connector-kafka:4.0.1-2.0 org.apache.iceberg:iceberg-flink-runtime-2.0:1.10.1 \
        org.apache.iceberg:iceberg-aws-bundle:1.10.1 org.apache.hadoop:hadoop-client-api:3.4.1 org.apache.hadoop:hadoop-client-runtime:3.4.1; do
        mvn -q -B dependency:copy "-Dartifact=$jar" "-DoutputDirectory=$PWD/lib"
    done
    rm -rf pip apache_flink_libraries-2.0.1.tar.gz
}

write_config() {
    mkdir -p "$DIR/conf" "$DIR/tmp"
    cat >"$DIR/conf/config.yaml" <<Y
rest: {address: 127.0.0.1, bind-address: 127.0.0.1, port: $PORT, bind-port: '$PORT'}
blob.server.port: '$((PORT + 1))'
jobmanager.rpc: {address: 127.0.0.1, port: $((PORT + 2))}
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: ${JM_MEMORY:-1600m}
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.rpc.port: '$((PORT + 3))'
taskmanager.data.port: $((PORT + 4))
taskmanager.numberOfTaskSlots: ${SLOTS:-4}
taskmanager.memory.process.size: ${TM_MEMORY:-2500m}
parallelism.default: 1
execution.target: remote
execution.checkpointing.interval: ${CHECKPOINT_INTERVAL:-10s}
execution.checkpointing.dir: file://$DIR/checkpoints
execution.checkpointing.savepoint-dir: file://$DIR/savepoints
execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION
classloader.check-leaked-classloader: false
io.tmp.dirs: $DIR/tmp
${FLINK_CONFIG:-}
Y
    printf '%s\n' 'rootLogger.level = WARN' 'rootLogger.appenderRef.e.ref = E' 'appender.e.name = E' 'appender.e.type = CONSOLE' 'appender.e.target = SYSTEM_ERR' \
        'appender.e.layout.type = PatternLayout' 'appender.e.layout.pattern = %d %-5p %c{1} %m%n' \
        'logger.q.name = org.apache.flink.streaming.api.operators.collect.CollectResultFetcher' 'logger.q.level = ERROR' \
        'logger.h.name = org.apache.flink.runtime.util.HadoopUtils' 'logger.h.level = ERROR' \
        'logger.n.name = org.apache.hadoop.util.NativeCodeLoader' 'logger.n.level = ERROR' >"$DIR/conf/log4j.properties"
}

# What Flink's own scripts open of the JDK's modules.
java_options() {
    local p
    OPTIONS=("-Dlog4j2.configurationFile=file:$DIR/conf/log4j.properties" "-Dlog4j.configurationFile=file:$DIR/conf/log4j.properties")
    for p in lang lang.reflect net io nio text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do OPTIONS+=("--add-opens=java.base/java.$p=ALL-UNNAMED"); done
    OPTIONS+=(--add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-exports=java.base/sun.net.util=ALL-UNNAMED
        --add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED)
    export FLINK_CONF_DIR=$DIR/conf FLINK_LIB_DIR=$HERE/lib FLINK_PLUGINS_DIR=$HERE/plugins
}

# start_process NAME WHICH(JM|TM) CLASS: memory is laid out by Flink's own calculation
start_process() {
    local lines jvm dynamic
    mapfile -t lines < <(java -cp "$HERE/bin/bash-java-utils.jar:$HERE/lib/flink-dist-2.0.1.jar" org.apache.flink.runtime.util.bash.BashJavaUtils \
        "GET_$2_RESOURCE_PARAMS" --configDir "$DIR/conf" --bindir "$HERE/bin" --libdir "$HERE/lib" 2>"$DIR/$1.memory.log" | sed -n 's/^BASH_JAVA_UTILS_EXEC_RESULT://p')
    [ ${#lines[@]} -eq 2 ] || { cat "$DIR/$1.memory.log" >&2; fail "Flink refuses the memory of the $1"; }
    read -ra jvm <<<"${lines[0]}"
    read -ra dynamic <<<"${lines[1]}"
    launch "$1" java "${OPTIONS[@]}" "-Djava.io.tmpdir=$DIR/tmp" "${jvm[@]}" -cp "$HERE/lib/*" "$3" --configDir "$DIR/conf" "${dynamic[@]}"
}

task_managers() { curl -sf "http://127.0.0.1:$PORT/overview" | grep -Eq "\"taskmanagers\": ?$1"; }

up() {
    if alive jobmanager && alive taskmanager; then note "runs already"; return; fi
    halt taskmanager
    halt jobmanager
    program mvn maven
    program curl curl
    cached flink-2.0.1 fetch
    take_port "${1:-}" 28081
    write_config
    start_process jobmanager JM org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint
    await jobmanager 90 task_managers 0
    start_process taskmanager TM org.apache.flink.runtime.taskexecutor.TaskManagerRunner
    await taskmanager 90 task_managers 1
}

cpu() {
    local name pid rest
    for name in jobmanager taskmanager; do
        read -r pid rest <"$DIR/$name.pid"
        echo "$name $(sed 's/.*) //' "/proc/$pid/stat" | awk -v hz="$(getconf CLK_TCK)" '{ printf "%.2f", ($12 + $13) / hz }') $(awk '$1 == "VmHWM:" { print $2 }' "/proc/$pid/status")"
    done
}

[ $# -ge 2 ] || help
command=$1
home "$2"
shift 2
program java openjdk-17-jdk-headless
java_options
case $command in
up) up "$@" ;;
down) halt taskmanager; halt jobmanager ;;
sql)
    need_up jobmanager
    [ -r "${1:-}" ] || help
    cp=$(java_main FlinkScript "$HERE/lib/*")
    exec java "${OPTIONS[@]}" -Xmx768m -cp "$cp" FlinkScript "$DIR/conf" "$1" "${2:-wait}"
    ;;
cpu) need_up jobmanager; cpu ;;
cli) need_up jobmanager; exec java "${OPTIONS[@]}" -Xmx512m -cp "$HERE/lib/*" org.apache.flink.client.cli.CliFrontend "$@" ;;
*) help ;;
esac
