#!/bin/sh
# Sees to it that a package's programs are here: need.sh PACKAGE...
# As root on Debian or Ubuntu, or with a sudo that asks for no password, it installs what is missing and keeps its services
# from starting; else it says what to install and ends with 3.
set -eu
# mariadbd, mkfs.ext4 and losetup are in sbin, which is not on everybody's path.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# Debian keeps PostgreSQL's server in a folder of its version.
for folder in /usr/lib/postgresql/*/bin; do
    PATH=$PATH:$folder
done

# The program whose presence tells that a package is there, whoever installed it.
program() {
    case $1 in
    default-jdk-headless) echo javac ;;
    e2fsprogs) echo mkfs.ext4 ;;
    iproute2) echo tc ;;
    mariadb-server) echo mariadbd ;;
    maven) echo mvn ;;
    mount) echo losetup ;;
    nghttp2-client) echo h2load ;;
    nginx-light) echo nginx ;;
    nodejs) echo node ;;
    postgresql) echo postgres ;;
    qemu-user-static) echo qemu-aarch64-static ;;
    sysstat) echo iostat ;;
    uwsgi-core) echo uwsgi ;;
    *) echo "$1" ;;
    esac
}

# Libraries and plugins have no program: what loads them says whether they are there.
present() {
    case $1 in
    python3-venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
    postgresql-*-hypopg) ls "/usr/lib/postgresql/$(echo "$1" | cut -d- -f2)/lib/hypopg.so" >/dev/null 2>&1 ;;
    ruby-async-http) ruby -r async/http -e '' >/dev/null 2>&1 ;;
    ruby-pg) ruby -r pg -e '' >/dev/null 2>&1 ;;
    uwsgi-plugin-python3) uwsgi --need-plugin python3 --version >/dev/null 2>&1 ;;
    # Its name ends in its version.
    php-fpm) ls /usr/sbin/php-fpm* >/dev/null 2>&1 ;;
    *) command -v "$(program "$1")" >/dev/null 2>&1 ;;
    esac
}

missing=
for package in "$@"; do
    present "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" -eq 0 ] || as_root='sudo -n'
if ! command -v apt-get >/dev/null 2>&1 || ! $as_root true >/dev/null 2>&1; then
    echo "missing:$missing; install with: sudo apt-get install$missing (or your system's packages of that name)" >&2
    exit 3
fi

# Debian starts a service as it is installed, unless a policy says no (status 101: forbidden). A lab brings its own
# servers; one on the standard port would be in somebody's way. A policy that is there already is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
    trap '$as_root rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
fi
install() {
    # shellcheck disable=SC2086 # lists of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >&2
}
# The output goes to stderr: what holdup prints on stdout may be JSON.
install || {
    $as_root apt-get update >&2
    install
}
for package in $missing; do
    present "$package" || {
        echo "$package is installed, but $(program "$package") is not to be found" >&2
        exit 3
    }
done
