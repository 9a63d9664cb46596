#!/bin/sh
# Runs a server as Kubernetes runs a container with a liveness probe: asks URL again and again, over a new connection each time, as the
# kubelet does; after too many failures in a row ends the server, first politely, and starts it again.
#   liveness.sh URL COMMAND...    in the environment PERIOD_SECONDS and TIMEOUT_SECONDS (1), FAILURES (3), GRACE_SECONDS (2)
# Until URL was answered once it only waits, as behind a startup probe. A line on stdout for all it does.
set -eu
url=${1:?usage: liveness.sh URL COMMAND...}
shift
period=${PERIOD_SECONDS:-1}
timeout=${TIMEOUT_SECONDS:-1}
most=${FAILURES:-3}
grace=${GRACE_SECONDS:-2}

say() {
    echo "$(date -u +%T.%3N) liveness: $*"
}
# A signal ends the wait at once, and not the sleep.
pause() {
    sleep "$1" &
    wait $! || true
}
start() {
    "$@" &
    child=$!
    live=
    failed=0
    say "started $child"
}
# The server and whatever it forked: with a container's first process all others go.
family() {
    for parent in "$@"; do
        echo "$parent"
        # shellcheck disable=SC2046 # a list of numbers
        family $(cat /proc/"$parent"/task/*/children 2>/dev/null || true)
    done
}
end() {
    all=$(family "$child")
    kill -TERM "$child" 2>/dev/null || true
    tenths=$((grace * 10))
    while kill -0 "$child" 2>/dev/null && [ "$tenths" -gt 0 ]; do
        pause 0.1
        tenths=$((tenths - 1))
    done
    ! kill -0 "$child" 2>/dev/null || say "$child is still there after $grace s: KILL"
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $all 2>/dev/null || true
    wait "$child" 2>/dev/null || true
}
trap 'trap "" TERM INT HUP; end; exit 0' TERM INT HUP

start "$@"
while :; do
    # By the clock, however long the probe takes.
    wait "${tick:-}" 2>/dev/null || true
    sleep "$period" &
    tick=$!
    if ! kill -0 "$child" 2>/dev/null; then
        status=0
        wait "$child" || status=$?
        say "$child ended by itself with status $status"
        start "$@"
    elif curl --silent --fail --output /dev/null --max-time "$timeout" "$url"; then
        [ -n "$live" ] || say "$child answers"
        live=yes
        failed=0
    elif [ -n "$live" ]; then
        failed=$((failed + 1))
        say "$child failed probe $failed of $most"
        if [ "$failed" -ge "$most" ]; then
            say "$failed failures in a row: TERM to $child"
            end
            start "$@"
        fi
    fi
done
