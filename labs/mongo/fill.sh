#!/bin/sh
# The documents of this lab, made once: fill.sh KIT FOLDER PORT HOLDUP. It starts FerretDB on FOLDER, fills it by
# `holdup generate`, and stops it again.
set -eu
kit=${1:?usage: fill.sh KIT FOLDER PORT HOLDUP} folder=${2:?} port=${3:?} holdup=${4:?}
lab=$(dirname "$0")
[ ! -e "$folder/whole" ] || exit 0
mkdir -p "$folder"
sh "$kit/ferretdb.sh" serve --handler=sqlite --log-level=error "--sqlite-url=file:$folder/" \
    "--state-dir=$folder" "--listen-addr=127.0.0.1:$port" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
tries=0
until "$holdup" generate "$lab/documents.yaml" --to "mongodb://127.0.0.1:$port/shop" --quiet; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] && kill -0 "$server" || exit 1
    sleep 0.2
done
kill "$server"
wait "$server" || true
trap - EXIT
# FerretDB 1.24 looks for a key by an expression that its own index does not have, and reads the whole collection.
table=$(sqlite3 "$folder/shop.sqlite" "SELECT table_name FROM _ferretdb_collections WHERE name = 'document'")
sqlite3 "$folder/shop.sqlite" "CREATE INDEX \"${table}_by_key\" ON \"$table\" (_ferretdb_sjson->'\$._id')"
: >"$folder/whole"
