#!/bin/sh
# A disk's limits as a cloud's volume has them: a burst, and then the baseline; none any more once this is stopped.
#   burst.sh FILE        in the environment BURST_SECONDS; BURST_BYTES and BASELINE_BYTES (like 40M); IOPS, and BURST_IOPS where that
#                       is more as long as the burst lasts. HOLDUP_LAB_SWITCHED names a file that gets the moment of the switch
set -eu
file=${1:?usage: burst.sh FILE}
trap 'rm -f "$file"; exit 0' TERM INT HUP
limits() {
    # Put in place at once: half a file would be none.
    printf 'bytes_per_second: %s\niops: %s\n' "$1" "$2" >"$file.new"
    mv "$file.new" "$file"
}
limits "$BURST_BYTES" "${BURST_IOPS:-$IOPS}"
echo ready
# `wait` ends with the signal; a command in the foreground would hold the trap back.
sleep "$BURST_SECONDS" &
wait $!
limits "$BASELINE_BYTES" "$IOPS"
date +%s.%N >"${HOLDUP_LAB_SWITCHED:-/dev/null}"
while :; do
    sleep 1 &
    wait $!
done
