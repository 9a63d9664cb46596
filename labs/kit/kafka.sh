#!/bin/sh
# Kafka 4.0.0, one broker that is its own controller (KRaft), from the Maven repository that this machine is set up for:
#   kafka.sh fetch            fetches it once into the user's cache; exit status 3 says what is missing
#   kafka.sh serve DIR FILE   runs it in this very process, on DIR/data, with the properties of FILE after its own
# Its ports, listeners and their security are FILE's. The account `holdup` with the password of the tests may log in by SCRAM.
set -eu
version=4.0.0
sum=11e0699f3681343ae6a3a355c61854b003ddb777a9ef39c12baf614bb9d65069
home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/holdup/kafka-$version
password=s3cr3t-canary

fetch() {
    [ ! -f "$home/data/meta.properties" ] || return 0
    for program in java mvn; do
        command -v $program >/dev/null 2>&1 || {
            echo "$program is not here, which Kafka needs; install with: sudo apt-get install maven default-jre-headless" >&2
            exit 3
        }
    done
    mkdir -p "$home"
    # One fetches it, others wait.
    exec 9>"$home/lock"
    flock -w 240 9
    [ ! -f "$home/data/meta.properties" ] || return 0
    part=$(mktemp -d "$home/part.XXXXXX")
    trap 'rm -rf "$part"' EXIT
    cat >"$part/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>holdup</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency></dependencies></project>
POM
    timeout 200 mvn -B -q -f "$part/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$part/jars" >&2 || {
        echo "mvn could not fetch org.apache.kafka:kafka_2.13:$version from its repository" >&2
        exit 3
    }
    found=$(export LC_ALL=C && cd "$part/jars" && sha256sum -- *.jar | sha256sum | cut -d" " -f1)
    [ "$found" = "$sum" ] || {
        echo "kafka_2.13:$version and its dependencies are not what they were when this was written ($found); not used" >&2
        exit 1
    }
    # Formatted once: each broker begins with a copy.
    properties "$part" >"$part/format.properties"
    java -Xmx128m -cp "$part/jars/*" kafka.tools.StorageTool format -t holdupholdupholdupholdg -c "$part/format.properties" \
        --add-scram "SCRAM-SHA-256=[name=holdup,password=$password]" >&2
    rm -rf "$home/jars" "$home/data"
    mv "$part/jars" "$home/jars"
    # It appears whole.
    mv "$part/data" "$home/data"
}

properties() {
    cat <<PROPERTIES
process.roles=broker,controller
node.id=1
log.dirs=$1/data
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:1
listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1
num.network.threads=1
num.io.threads=2
background.threads=1
num.recovery.threads.per.data.dir=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
PROPERTIES
}

case ${1:-} in
fetch) fetch ;;
serve)
    dir=${2:?usage: kafka.sh serve DIR FILE}
    [ -f "$home/data/meta.properties" ] || {
        echo "Kafka is not here; run: sh labs/kit/kafka.sh fetch" >&2
        exit 3
    }
    [ -d "$dir/data" ] || cp -R "$home/data" "$dir/data"
    # A property that comes again replaces the first.
    {
        properties "$dir"
        cat "${3:?usage: kafka.sh serve DIR FILE}"
    } >"$dir/all.properties"
    exec java -Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$home/jars/*" kafka.Kafka "$dir/all.properties"
    ;;
*)
    echo "usage: kafka.sh fetch | serve DIR FILE" >&2
    exit 2
    ;;
esac
