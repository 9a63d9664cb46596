#!/bin/sh
# Runs MariaDB's server in the foreground with the arguments given, in this very process (the pid stays the same).
# It finds the program where other users' paths don't look, and runs as whoever calls it.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
server=$(command -v mariadbd || command -v mysqld) || {
    echo "mariadbd is not here; run: labs/kit/need.sh mariadb-server" >&2
    exit 3
}
# The server refuses root unless it is told that root is meant; told so by anybody else, it only grumbles.
if [ "$(id -u)" -eq 0 ]; then
    exec "$server" "$@" --user=root
fi
exec "$server" "$@"
