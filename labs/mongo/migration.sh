#!/bin/sh
# Locks the table of the collection `document` for 1.2 s of every 2, at most sixty times: migration.sh PORT. Says "ready".
set -eu
port=${1:?usage: migration.sh PORT}
sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$port" -U boss -d postgres -c "$1"
}
table=$(sql "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'shop' AND relkind = 'r' AND relname LIKE 'document%'")
trap 'exit 0' TERM INT
echo ready
turn=0
while [ "$turn" -lt 60 ]; do
    turn=$((turn + 1))
    sql "BEGIN; LOCK TABLE shop.\"$table\" IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(1.2); COMMIT" >/dev/null
    sleep 0.8
done
