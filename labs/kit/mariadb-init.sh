#!/bin/sh
# Makes an empty MariaDB data folder in DIR, with nothing of the machine's own configuration in it.
# Usage: mariadb-init.sh DIR        Started servers of this folder let root in without a password: loopback only.
set -eu
dir=${1:?usage: mariadb-init.sh DIR}
if [ -d "$dir/mysql" ]; then
    exit 0
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# A server that starts removes what it takes for its own left-overs in the folder for temporary files: not from the machine's.
TMPDIR=$dir.tmp
mkdir -p "$TMPDIR"
export TMPDIR
install=$(command -v mariadb-install-db || command -v mysql_install_db) || {
    echo "mariadb-install-db is not here; run: labs/kit/need.sh mariadb-server" >&2
    exit 3
}
# Run by root, the server would refuse to start unless it is told that root is meant.
user=$(id -un)
# The statement log of installing goes to a file: it is only of interest if it fails.
if ! "$install" --no-defaults --user="$user" --datadir="$dir" --auth-root-authentication-method=normal \
    --skip-test-db --skip-name-resolve >"$dir.install.log" 2>&1; then
    cat "$dir.install.log" >&2
    exit 1
fi
