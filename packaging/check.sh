#!/bin/sh
# Installs each artefact in a root of its own, without a network, runs holdup there up to a verdict, and removes it:
#   check.sh DIST        DIST is what `cargo xtask dist` made; this needs root, a Debian, and Linux 6.7 for another CPU's demo
set -eu
dist=$(cd "$1" && pwd)
project=$(cd "$(dirname "$0")/.." && pwd)
sh "$project/labs/kit/need.sh" mmdebstrap rpm skopeo qemu-user-static
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
native=$(uname -m)

say() { echo "   $*"; }

# inside NAMESPACES ROOT USER COMMAND...: in ROOT, with a /proc and a loopback of its own; what it started ends with it.
inside() {
    namespaces=$1 root=$2 user=$3
    shift 3
    mkdir -p "$root/proc"
    # What another CPU's programs run in is known in there only.
    # shellcheck disable=SC2016,SC2086 # the inner shell's; a list of words
    unshare $namespaces --mount --pid --net --fork sh -c '
        root=$1 user=$2 other=$3; shift 3
        ip link set lo up
        if [ "$other" = yes ]; then
            mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
            cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
        fi
        mount -t proc proc "$root/proc"
        [ "$user" != 0:0 ] || exec chroot "$root" "$@"
        exec chroot --userspec="$user" "$root" "$@"' sh "$root" "$user" "${other:-no}" "$@"
}
in_root() { inside "" "$@"; }

# Up to a verdict, from an empty machine: a live one, and that of a recording, which is the same on every CPU.
verdicts() {
    root=$1 program=$2 user=$3
    mkdir -p "$root/tmp" "$root/fixture"
    chmod 1777 "$root/tmp"
    cp "$project"/fixtures/demo-faulty/* "$root/fixture/"
    inside "${namespaces_of_user:-}" "$root" "$user" "$program" diagnose /fixture >"$work/said"
    [ -f "$work/verdict" ] || cp "$work/said" "$work/verdict"
    diff "$work/verdict" "$work/said"
    inside "${namespaces_of_user:-}" "$root" "$user" "$program" demo --quiet -o /tmp/demo >"$work/demo"
    grep -q '^FOUND .*connection_pool_exhausted' "$work/demo"
    rm -rf "$root/tmp/demo" "$root/fixture"
}

# The files of a root and the folders of holdup's own, without what packagers keep of their work.
files() { (cd "$1" && find . -xdev \( ! -type d -o -name holdup \) | grep -Ev '^\./(var/lib/(dpkg|rpm)|var/log|proc|tmp)(/|$)' | sort); }

(cd "$dist" && sha256sum --check --quiet SHA256SUMS)
say "checksums: right"

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=/etc/apt/sources.list
[ -s "$sources" ] || sources=$(ls /etc/apt/sources.list.d/*.sources | head -1)
mmdebstrap --quiet --variant=essential "$suite" "$work/debian" "$sources"
files "$work/debian" >"$work/before"

# installed NAME INSTALL REMOVE: a package, from its installation to its removal.
installed() {
    begun=$(date +%s)
    eval "$2"
    in_root "$work/debian" 0:0 holdup --version
    for file in /usr/share/man/man1/holdup-watch.1.gz /usr/share/bash-completion/completions/holdup \
        /usr/lib/systemd/system/holdup.service /etc/holdup/watch /usr/share/doc/holdup/copyright; do
        [ -s "$work/debian$file" ] || { say "$1 lacks $file" && exit 1; }
    done
    verdicts "$work/debian" holdup 0:0
    took=$(($(date +%s) - begun))
    eval "$3"
    files "$work/debian" | diff "$work/before" -
    say "$1: installed and at two verdicts in $took s, removed without a trace"
}

for package in "$dist"/holdup_*_"$(dpkg --print-architecture)".deb; do
    cp "$package" "$work/debian/tmp/holdup.deb"
    installed "$(basename "$package")" 'in_root "$work/debian" 0:0 dpkg --install /tmp/holdup.deb' \
        'in_root "$work/debian" 0:0 dpkg --purge holdup'
done
for package in "$dist"/holdup-*."$native".rpm; do
    installed "$(basename "$package")" 'rpm --root "$work/debian" --dbpath /var/lib/rpm --install --nodeps "$package"' \
        'rpm --root "$work/debian" --dbpath /var/lib/rpm --erase holdup'
done

# Nothing but the archive: the program needs no library and no shell. Another CPU's runs in QEMU.
for archive in "$dist"/holdup-*-linux.tar.gz; do
    root=$work/$(basename "$archive")
    mkdir "$root"
    tar --extract --gzip --strip-components=1 --directory "$root" --file "$archive"
    other=no namespaces_of_user=
    case $archive in *"-$native-"*) ;; *) other=yes namespaces_of_user='--user --map-root-user' ;; esac
    verdicts "$root" /bin/holdup 0:0
    say "$(basename "$archive"): at two verdicts"
done
other=no namespaces_of_user=

# The image as a registry would take it, and as its own user.
for image in "$dist"/holdup-*-oci.tar; do
    for arch in $(for package in "$dist"/*.deb; do basename "$package" .deb | sed 's/.*_//'; done); do
        copy=$work/image-$arch root=$work/root-$arch
        skopeo copy --quiet --override-arch "$arch" --override-os linux "oci-archive:$image" "dir:$copy"
        mkdir "$root"
        layer=$(sed 's/.*"layers":\[{[^}]*"digest":"sha256:\([0-9a-f]*\).*/\1/' "$copy/manifest.json")
        tar --extract --gzip --directory "$root" --file "$copy/$layer"
        [ "$arch" != "$(dpkg --print-architecture)" ] || verdicts "$root" /usr/bin/holdup 65532:65532
        say "$(basename "$image"): $arch"
    done
done
