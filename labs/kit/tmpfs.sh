#!/bin/sh
# A tmpfs at DIR for as long as this runs: tmpfs.sh DIR SIZE    Root only.
set -eu
dir=${1:?usage: tmpfs.sh DIR SIZE}
size=${2:?usage: tmpfs.sh DIR SIZE}
mkdir -p "$dir"
mount -t tmpfs -o "size=$size,mode=1777" tmpfs "$dir"
# Lazily: whoever still has a file there keeps it.
trap 'umount -l "$dir"; exit 0' TERM INT HUP
echo ready
while :; do
    sleep 1 &
    wait $!
done
