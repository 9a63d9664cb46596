#!/bin/sh
# Keeps a cgroup with a limit on memory until it is told to stop (TERM), and removes it then: memory-cgroup.sh FILE LIMIT
# FILE gets its path, for in-cgroup.sh; LIMIT is like 200M. With --check it only says whether it can be done here (else 3).
# The page cache of what its processes read first counts as theirs. Version 1 and version 2 of cgroups.
set -eu

# The folder below which ours is made: our own cgroup, so that its limits hold for us too.
below() {
    mount=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
    if [ -n "$mount" ]; then
        own=$(awk -F: '$2 ~ /(^|,)memory(,|$)/ { print $3; exit }' /proc/self/cgroup)
        # In a container the mount may begin where our own cgroup does.
        if [ -d "$mount$own" ]; then echo "$mount$own"; else echo "$mount"; fi
        return
    fi
    mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [ -n "$mount" ] || return 0
    own=$(awk -F: '$1 == "0" { print $3; exit }' /proc/self/cgroup)
    # One with processes can't have limited children: the nearest above that hands the controller on.
    while [ -n "$own" ]; do
        own=${own%/*}
        if grep -qw memory "$mount$own/cgroup.subtree_control" 2>/dev/null; then
            echo "$mount$own"
            return
        fi
    done
}

parent=$(below)
if [ -z "$parent" ] || [ ! -w "$parent/cgroup.procs" ]; then
    echo "a limit on memory can't be set here: run as root, where cgroups have the memory controller" >&2
    exit 3
fi
[ "${1:-}" != --check ] || exit 0

file=${1:?usage: memory-cgroup.sh FILE LIMIT}
limit=${2:?usage: memory-cgroup.sh FILE LIMIT}

# What one that was killed has left.
for left in "$parent"/holdup-memory-*; do
    [ ! -d "$left" ] || [ -d "/proc/${left##*-}" ] || rmdir "$left" 2>/dev/null || true
done

group=$parent/holdup-memory-$$
remove() {
    trap '' TERM INT HUP
    tries=0
    # Not while anybody is in it.
    until rmdir "$group" 2>/dev/null || [ ! -d "$group" ] || [ "$tries" -ge 150 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    [ ! -d "$group" ] || { echo "$group can't be removed: something is still in it" >&2; exit 1; }
    exit 0
}
trap remove TERM INT HUP
mkdir "$group"
if [ -e "$group/memory.max" ]; then
    echo "$limit" >"$group/memory.max"
else
    echo "$limit" >"$group/memory.limit_in_bytes"
fi
echo "$group" >"$file"
echo "ready $group"
# A signal ends the wait at once, and not the sleep.
while :; do
    sleep 1 &
    wait $! || true
done
