#!/bin/sh
# FILE says TEXT for as long as this runs, and is removed when it is stopped: while-running.sh FILE TEXT...
# For a disk's limits: started last it is stopped first, and the others end on a disk that isn't slowed.
set -eu
file=${1:?usage: while-running.sh FILE TEXT...}
shift
trap 'rm -f "$file"; exit 0' TERM INT HUP
printf '%s\n' "$@" >"$file"
echo ready
# `wait` ends with the signal; a command in the foreground would hold the trap back.
while :; do
    sleep 1 &
    wait $!
done
