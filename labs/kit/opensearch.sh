#!/bin/sh
# OpenSearch 2.19.1, one node, from the Maven repository that this machine is set up for:
#   opensearch.sh fetch                      fetches it once into the user's cache; exit status 3 says what is missing
#   opensearch.sh serve DIR NAME=VALUE...    runs it in this very process, on DIR/data, with these settings (http.port, …)
# Its own plugin for accounts is not in the repository, so opensearch/Node.java has one with three: `admin` may do all,
# `holdup` may read, `half` may read all but settings of indices; each has the password of the tests.
set -eu
version=2.19.1
sum=a9fa094d79de45e2a6fdc753d3565318c195f09815a9ef449b6d1f06f9bbbb5a
home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/holdup/opensearch-$version
source=$(dirname "$0")/opensearch/Node.java
# Another version of that source is another node.
node=$home/node-$(sha256sum <"$source" | cut -c1-12)

fetch() {
    [ ! -f "$node/complete" ] || return 0
    for program in javac mvn; do
        command -v $program >/dev/null 2>&1 || {
            echo "$program is not here, which OpenSearch needs; install with: sudo apt-get install maven default-jdk-headless" >&2
            exit 3
        }
    done
    mkdir -p "$home"
    # One fetches it, others wait.
    exec 9>"$home/lock"
    flock -w 240 9
    [ ! -f "$node/complete" ] || return 0
    part=$(mktemp -d "$home/part.XXXXXX")
    trap 'rm -rf "$part"' EXIT
    [ -d "$home/jars" ] || jars
    mkdir -p "$node"
    javac -nowarn -cp "$home/jars/*" -d "$part/node" "$source" >&2
    jar --create --file "$node/node.jar" -C "$part/node" .
    # Its classes, loaded once for all starts: half the CPU time of each.
    configure "$part"
    (run -XX:ArchiveClassesAtExit="$node/classes.jsa" "$part" once http.port=0 transport.port=0 >"$part/log" 2>&1)
    touch "$node/complete"
}

configure() {
    mkdir -p "$1/config"
    cat >"$1/config/log4j2.properties" <<LOG
appender.all.type=Console
appender.all.name=all
appender.all.layout.type=PatternLayout
appender.all.layout.pattern=%d %p %c %m%n
rootLogger.level=warn
rootLogger.appenderRef.all.ref=all
LOG
}

# run OPTION DIR SETTING...: in place of this process, or of the one that it is called in
run() {
    option=$1 folder=$2
    shift 2
    exec java "$option" -Xms96m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
        -cp "$node/node.jar:$home/jars/*" Node "path.home=$folder" "$@"
}

jars() {
    cat >"$part/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>holdup</groupId><artifactId>opensearch</artifactId><version>1</version><dependencies>
<dependency><groupId>org.opensearch</groupId><artifactId>opensearch</artifactId><version>$version</version></dependency>
<dependency><groupId>org.opensearch.plugin</groupId><artifactId>transport-netty4-client</artifactId><version>$version</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>2.21.0</version></dependency>
</dependencies></project>
POM
    timeout 200 mvn -B -q -f "$part/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$part/jars" >&2 || {
        echo "mvn could not fetch org.opensearch:opensearch:$version from its repository" >&2
        exit 3
    }
    found=$(export LC_ALL=C && cd "$part/jars" && sha256sum -- *.jar | sha256sum | cut -d" " -f1)
    [ "$found" = "$sum" ] || {
        echo "opensearch:$version and its dependencies are not what they were when this was written ($found); not used" >&2
        exit 1
    }
    mv "$part/jars" "$home/jars"
}

case ${1:-} in
fetch) fetch ;;
serve)
    dir=${2:?usage: opensearch.sh serve DIR NAME=VALUE...}
    shift 2
    [ -f "$node/complete" ] || {
        echo "OpenSearch is not here; run: sh labs/kit/opensearch.sh fetch" >&2
        exit 3
    }
    configure "$dir"
    run -XX:SharedArchiveFile="$node/classes.jsa" "$dir" "$@"
    ;;
*)
    echo "usage: opensearch.sh fetch | serve DIR NAME=VALUE..." >&2
    exit 2
    ;;
esac
