#!/bin/sh
# A cgroup with limits on CPU and memory, as a container has them. Version 1 and version 2 of cgroups.
#   limits.sh --check            whether it can be made here (else 3)
#   limits.sh keep FILE          makes it, keeps it until it is told to stop (TERM), and removes it then
#   limits.sh in FILE COMMAND... runs a command in it, in this very process; with RESTART_AFTER_SECONDS as a child, again and again
# The limits are in the environment, and without them there are none: CPU_US, microseconds of each 100 ms; MEMORY, like
# 200M; OPEN_FILES. FILE gets the folders that keep made.
set -eu

# The folder of version 1's controller, or of version 2, below which ours is made.
mount_of() {
    awk -v c="$1" '$3 == "cgroup" && $4 ~ ("(^|,)" c "(,|$)") { print $2; exit }' /proc/mounts
}
unified() {
    awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}
# Folders to make, a line each: one that has both controllers, or one each.
parents() {
    if [ -n "$(mount_of cpu)" ] && [ -n "$(mount_of memory)" ]; then
        echo "$(mount_of cpu)"
        echo "$(mount_of memory)"
    elif [ -n "$(unified)" ] && grep -qw cpu "$(unified)/cgroup.subtree_control" 2>/dev/null; then
        unified
    fi
}

case ${1:-} in
--check)
    for parent in $(parents); do
        [ -w "$parent/cgroup.procs" ] || break
        usable=yes
    done
    if [ -z "${usable:-}" ]; then
        echo "limits on CPU and memory can't be set here: run as root, where cgroups have both controllers" >&2
        exit 3
    fi
    ;;
keep)
    file=${2:?usage: limits.sh keep FILE}
    cpu=${CPU_US:-max}
    memory=${MEMORY:-max}
    # What one that was killed has left.
    for parent in $(parents); do
        for left in "$parent"/holdup-limits-*; do
            [ ! -d "$left" ] || [ -d "/proc/${left##*-}" ] || rmdir "$left" 2>/dev/null || true
        done
    done
    remove() {
        trap '' TERM INT HUP
        for group in $(cat "$file"); do
            tries=0
            # Whose parent was killed may have been left behind, and would run on for good.
            for pid in $(cat "$group/cgroup.procs" 2>/dev/null); do
                kill -KILL "$pid" 2>/dev/null || true
            done
            # Not while anybody is in it.
            until rmdir "$group" 2>/dev/null || [ ! -d "$group" ] || [ "$tries" -ge 150 ]; do
                tries=$((tries + 1))
                sleep 0.1
            done
        done
        exit 0
    }
    : >"$file"
    trap remove TERM INT HUP
    for parent in $(parents); do
        group=$parent/holdup-limits-$$
        mkdir "$group"
        echo "$group" >>"$file"
        if [ "$cpu" != max ]; then
            [ ! -e "$group/cpu.max" ] || echo "$cpu 100000" >"$group/cpu.max"
            [ ! -e "$group/cpu.cfs_quota_us" ] || echo "$cpu" >"$group/cpu.cfs_quota_us"
        fi
        if [ "$memory" != max ]; then
            [ ! -e "$group/memory.max" ] || echo "$memory" >"$group/memory.max"
            [ ! -e "$group/memory.limit_in_bytes" ] || echo "$memory" >"$group/memory.limit_in_bytes"
        fi
    done
    echo "ready"
    # A signal ends the wait at once, and not the sleep.
    while :; do
        sleep 1 &
        wait $! || true
    done
    ;;
in)
    file=${2:?usage: limits.sh in FILE COMMAND...}
    shift 2
    for group in $(cat "$file"); do
        echo $$ >"$group/cgroup.procs"
    done
    [ -z "${OPEN_FILES:-}" ] || ulimit -n "$OPEN_FILES"
    [ -n "${RESTART_AFTER_SECONDS:-}" ] || exec "$@"
    trap 'trap "" TERM; kill "$child" 2>/dev/null; wait "$child"; exit 0' TERM INT HUP
    while :; do
        "$@" &
        child=$!
        # Ended by itself or by a signal: either way it is started again.
        wait "$child" || true
        sleep "$RESTART_AFTER_SECONDS" &
        child=$!
        wait "$child" || true
    done
    ;;
*)
    echo "usage: limits.sh --check | keep FILE | in FILE COMMAND..." >&2
    exit 2
    ;;
esac
