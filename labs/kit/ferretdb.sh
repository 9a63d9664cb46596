#!/bin/sh
# FerretDB 1.24.0, a server that speaks MongoDB's protocol and stores in SQLite, built from the Go module
# proxy that this machine is set up for. It stands in for mongod, which no registry has:
#   ferretdb.sh fetch             builds it into the user's cache once; exit status 3 says what is missing
#   ferretdb.sh serve ARGUMENT... runs the server in this very process
set -eu
module=github.com/FerretDB/FerretDB
version=v1.24.0
sum='h1:7WJmezL48Bj9bYWnhT/bEJgX5gjT5s7LFdHTqkN25rA='
home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/holdup/ferretdb-$version
server=$home/ferretdb
# A build that hangs is not waited for.
limit_s=1500

fetch() {
    [ ! -x "$server" ] || return 0
    command -v go >/dev/null 2>&1 || {
        echo "go is not here, which builds FerretDB (Go 1.22 or later); install with: sudo apt-get install golang" >&2
        exit 3
    }
    mkdir -p "$home"
    # One builds it, others wait; a test does not wait for ever.
    exec 9>"$home/lock"
    flock -w 240 9 || {
        echo "FerretDB is still being built; ask again in some minutes" >&2
        exit 3
    }
    [ ! -x "$server" ] || return 0
    # In a folder of its own first: what is cut off half way must not be taken for the whole.
    part=$(mktemp -d "$home/part.XXXXXX")
    trap 'chmod -R u+w "$part"; rm -rf "$part"' EXIT
    found=$(cd "$part" && GOFLAGS=-mod=mod GOTOOLCHAIN=local timeout 120 go mod download -json "$module@$version") || {
        echo "go could not fetch $module@$version from its module proxy" >&2
        exit 3
    }
    folder=$(printf '%s' "$found" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
    printf '%s' "$found" | grep -qF "\"Sum\": \"$sum\"" || {
        echo "$module@$version is not what it was when this was written; it is not used" >&2
        exit 1
    }
    cp -R "$folder" "$part/source"
    chmod -R u+w "$part/source"
    # The server does not start without the files that its own build would generate.
    for file in version commit branch package; do
        echo "$version" >"$part/source/build/version/$file.txt"
    done
    (cd "$part/source" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOTOOLCHAIN=local \
        timeout "$limit_s" nice -n 19 go build -p 2 -o "$part/ferretdb" ./cmd/ferretdb) || {
        echo "go could not build $module@$version" >&2
        exit 3
    }
    # It appears whole.
    mv "$part/ferretdb" "$server"
}

case ${1:-} in
fetch) fetch ;;
serve)
    shift
    [ -x "$server" ] || {
        echo "FerretDB is not here; run: sh labs/kit/ferretdb.sh fetch" >&2
        exit 3
    }
    # No port for debugging, no telemetry. A flag that comes again replaces the first.
    exec "$server" --debug-addr=- --telemetry=disable "$@"
    ;;
*)
    echo "usage: ferretdb.sh fetch | serve ARGUMENT..." >&2
    exit 2
    ;;
esac
