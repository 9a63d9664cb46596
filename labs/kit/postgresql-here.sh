#!/bin/sh
# The system's own PostgreSQL:
#   postgresql-here.sh init DIR          makes an empty data folder, in which boss needs no password: loopback only
#   postgresql-here.sh as COMMAND...     runs one of its programs as who may run a server: root's is nobody, anybody else is themselves
#   postgresql-here.sh serve ARGUMENT... runs the server in this very process
# The server refuses to be root: for root it is run by nobody, and the folders above DIR have to let nobody through.
set -eu
# Debian keeps the server in a folder of its version, which is on nobody's path.
for folder in /usr/lib/postgresql/*/bin; do
    PATH=$folder:$PATH
done
command -v postgres >/dev/null 2>&1 || {
    echo "PostgreSQL's server is not here; run: labs/kit/need.sh postgresql" >&2
    exit 3
}
become() {
    if [ "$(id -u)" -eq 0 ]; then
        exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    fi
    exec "$@"
}
case ${1:-} in
init)
    dir=${2:?usage: postgresql-here.sh init DIR}
    [ ! -d "$dir/base" ] || exit 0
    mkdir -p "$dir"
    if [ "$(id -u)" -eq 0 ]; then
        chown 65534:65534 "$dir"
        # Through, not into: nobody may not list it.
        chmod o+x "$(dirname "$dir")"
    fi
    cd "$dir"
    become initdb --username=boss --auth=trust --no-locale --encoding=UTF8 --no-sync -D "$dir" >&2
    ;;
as)
    shift
    become "$@"
    ;;
serve)
    shift
    become postgres "$@"
    ;;
*)
    echo "usage: postgresql-here.sh init DIR | as COMMAND... | serve ARGUMENT..." >&2
    exit 2
    ;;
esac
