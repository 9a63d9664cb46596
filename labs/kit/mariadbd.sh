#!/bin/sh
# Runs MariaDB's server in the foreground with the arguments given, in this very process (the pid stays the same).
# It finds the program where other users' paths don't look, and runs as whoever calls it.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
server=$(command -v mariadbd || command -v mysqld) || {
    echo "mariadbd is not here; run: labs/kit/need.sh mariadb-server" >&2
    exit 3
}
# A server that starts removes what it takes for its own left-overs in the folder for temporary files: by its data, then, and
# not from the machine's, where another server may be at work. What the arguments say of it holds.
for argument in "$@"; do
    case $argument in
    --datadir=*) TMPDIR=${argument#--datadir=}.tmp ;;
    esac
done
if [ -n "${TMPDIR:-}" ]; then
    mkdir -p "$TMPDIR"
    export TMPDIR
fi
# The server refuses root unless it is told that root is meant; told so by anybody else, it only grumbles.
if [ "$(id -u)" -eq 0 ]; then
    exec "$server" "$@" --user=root
fi
exec "$server" "$@"
