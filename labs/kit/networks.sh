#!/bin/sh
# A database's machine and the way to it, as network namespaces: this one (the app's) - a router - the database's, and a
# second way past the router for those who watch, so that what they read is not in the way of what they watch.
#   networks.sh --check            whether it can be made here (else 3)
#   networks.sh keep FILE          makes it, keeps it until it is told to stop (TERM), and removes it then
#   networks.sh in FILE COMMAND... runs a command on the database's side, in this very process
# FILE-namespace gets the name of the database's namespace, FILE-database its address for the app, FILE-watch its address for
# those who watch.
# With RATE in the environment, like 10mbit, what the database answers passes the router at that rate, behind a bucket of BURST (5kb).
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

case ${1:-} in
--check)
    name=holdup-check-$$
    # Whether the kernel has what it takes is only known once it was made.
    if ! { ip netns add "$name" && ip -n "$name" link add here type veth peer name there &&
        tc -n "$name" qdisc add dev here root tbf rate 10mbit burst 5kb latency 1s; } 2>/dev/null; then
        ip netns del "$name" 2>/dev/null || true
        echo "network namespaces with a shaped link can't be made here: run as root, with iproute2, on a kernel with veth and sch_tbf" >&2
        exit 3
    fi
    ip netns del "$name"
    ;;
keep)
    file=${2:?usage: networks.sh keep FILE}
    # What one that was killed has left.
    for left in $(ip netns list | sed -n 's/^holdup-[dr]-\([0-9]*\).*/\1/p'); do
        [ -d "/proc/$left" ] || { ip netns del "holdup-d-$left"; ip netns del "holdup-r-$left"; } 2>/dev/null || true
    done
    database=holdup-d-$$
    router=holdup-r-$$
    # Two networks of /30 and one more for those who watch, of a private range that others seldom use, told apart by pid.
    net=10.$((224 + $$ / 256 % 16)).$(($$ % 256))
    remove() {
        trap '' TERM INT HUP
        # With a namespace go its ends of all pairs, and so the others'.
        ip netns del "$database" 2>/dev/null || true
        ip netns del "$router" 2>/dev/null || true
        exit "${1:-0}"
    }
    trap remove TERM INT HUP
    make() {
        ip netns add "$database"
        ip netns add "$router"
        ip link add "hua$$" type veth peer name app netns "$router"
        ip -n "$router" link add db type veth peer name app netns "$database"
        ip link add "huw$$" type veth peer name watch netns "$database"
        ip addr add "$net.1/30" dev "hua$$"
        ip -n "$router" addr add "$net.2/30" dev app
        ip -n "$router" addr add "$net.5/30" dev db
        ip -n "$database" addr add "$net.6/30" dev app
        ip addr add "$net.9/30" dev "huw$$"
        ip -n "$database" addr add "$net.10/30" dev watch
        ip link set "hua$$" up
        ip link set "huw$$" up
        ip -n "$router" link set app up
        ip -n "$router" link set db up
        ip -n "$database" link set lo up
        ip -n "$database" link set app up
        ip -n "$database" link set watch up
        ip route add "$net.4/30" via "$net.2"
        ip -n "$database" route add "$net.0/30" via "$net.5"
        ip netns exec "$router" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
        [ -z "${RATE:-}" ] || tc -n "$router" qdisc add dev app root tbf rate "$RATE" burst "${BURST:-5kb}" latency 1s
    }
    make || remove 1
    echo "$database" >"$file-namespace"
    echo "$net.6" >"$file-database"
    echo "$net.10" >"$file-watch"
    echo "ready"
    # A signal ends the wait at once, and not the sleep.
    while :; do
        sleep 1 &
        wait $! || true
    done
    ;;
in)
    file=${2:?usage: networks.sh in FILE COMMAND...}
    shift 2
    exec ip netns exec "$(cat "$file-namespace")" "$@"
    ;;
*)
    echo "usage: networks.sh --check | keep FILE | in FILE COMMAND..." >&2
    exit 2
    ;;
esac
