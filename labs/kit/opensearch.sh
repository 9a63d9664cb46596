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

fetch() {
    # Compiled from this very source, it is complete.
    ! cmp -s "$source" "$home/node/Node.java" || return 0
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
    part=$(mktemp -d "$home/part.XXXXXX")
    trap 'rm -rf "$part"' EXIT
    [ -d "$home/jars" ] || jars
    cmp -s "$source" "$home/node/Node.java" || {
        mkdir "$part/node"
        javac -nowarn -cp "$home/jars/*" -d "$part/node" "$source" >&2
        cp "$source" "$part/node"
        rm -rf "$home/node"
        mv "$part/node" "$home/node"
    }
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
    [ -d "$home/node" ] || {
        echo "OpenSearch is not here; run: sh labs/kit/opensearch.sh fetch" >&2
        exit 3
    }
    mkdir -p "$dir/config"
    cat >"$dir/config/log4j2.properties" <<LOG
appender.all.type=Console
appender.all.name=all
appender.all.layout.type=PatternLayout
appender.all.layout.pattern=%d %p %c %m%n
rootLogger.level=warn
rootLogger.appenderRef.all.ref=all
LOG
    exec java -Xms96m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$home/node:$home/jars/*" Node "path.home=$dir" "$@"
    ;;
*)
    echo "usage: opensearch.sh fetch | serve DIR NAME=VALUE..." >&2
    exit 2
    ;;
esac
