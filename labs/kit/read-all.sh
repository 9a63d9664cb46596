#!/bin/sh
# Reads FILE again and again past the page cache, as a backup does, with PARALLEL readers and requests of BLOCK bytes:
# read-all.sh FILE PARALLEL BLOCK    Ends by itself after 120 s.
set -eu
file=${1:?usage: read-all.sh FILE PARALLEL BLOCK}
parallel=${2:?usage: read-all.sh FILE PARALLEL BLOCK}
block=${3:?usage: read-all.sh FILE PARALLEL BLOCK}
trap 'kill $(jobs -p) 2>/dev/null; exit 0' TERM INT HUP
reader=1
while [ "$reader" -le "$parallel" ]; do
    (while :; do dd if="$file" of=/dev/null bs="$block" iflag=direct 2>/dev/null || exit 1; done) &
    reader=$((reader + 1))
done
echo ready
sleep 120 &
wait $!
kill $(jobs -p) 2>/dev/null || true
