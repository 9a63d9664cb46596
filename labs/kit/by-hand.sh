#!/bin/sh
# What a person at a shell would paste: the outputs of standard tools with their prompts, round after round, for as long as
# this runs: by-hand.sh FILE [mysql PORT USER | postgresql PORT USER]; MYSQL_PWD has MySQL's password. Says "ready" when the
# settings are in FILE.
set -u
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
file=${1:?usage: by-hand.sh FILE [mysql PORT USER | postgresql PORT USER]}
kind=${2:-none} port=${3:-} user=${4:-}
sh "$(dirname "$0")/need.sh" sysstat || exit 3
trap 'exit 0' TERM INT HUP

# A command below its prompt, as a terminal shows both.
shell() {
    printf '\n$ %s\n' "$*"
    "$@" 2>&1
}
mysql() {
    mariadb --no-defaults --host=127.0.0.1 --port="$port" --user="$user" --connect-timeout=2 "$@" 2>&1
}
mysql_says() {
    printf '\nMariaDB [(none)]> %s;\n' "$1"
    mysql --table --execute="$1"
}
postgresql_says() {
    printf '\npostgres=# %s;\n' "$1"
    PGCONNECT_TIMEOUT=2 psql -X -h 127.0.0.1 -p "$port" -U "$user" -d postgres -c "$1" 2>&1
}

once() {
    shell date -u
    shell nproc
    shell df -h
    shell mount
    shell lsblk
    shell blockdev --report
    case $kind in
    mysql) mysql_says 'SHOW GLOBAL VARIABLES' ;;
    postgresql) postgresql_says 'SELECT name, setting, unit FROM pg_settings' ;;
    esac
}

database() {
    case $kind in
    mysql)
        mysql_says 'SHOW FULL PROCESSLIST'
        mysql_says 'SHOW GLOBAL STATUS'
        # Empty without a thread pool.
        mysql_says 'SELECT * FROM information_schema.THREAD_POOL_GROUPS'
        mysql_says 'SELECT * FROM information_schema.THREAD_POOL_QUEUES'
        printf '\nMariaDB [(none)]> SHOW ENGINE INNODB STATUS\\G\n'
        mysql --vertical --execute='SHOW ENGINE INNODB STATUS'
        ;;
    postgresql)
        postgresql_says 'SELECT pid, state, wait_event_type, wait_event, now() - query_start AS age, left(query, 60) AS query FROM pg_stat_activity'
        for view in database bgwriter wal user_tables; do
            postgresql_says "SELECT * FROM pg_stat_$view"
        done
        ;;
    esac
}

# Two that take their time run side by side, as in two windows.
one_round() {
    shell date -u
    shell uptime
    shell free -b
    shell top -b -n 1 -H -w 160 | head -n 60
    shell vmstat -t 1 3 >"$file.vmstat" &
    vmstat=$!
    shell iostat -xt 1 3
    wait "$vmstat"
    cat "$file.vmstat"
    shell ps -eTo ppid,pid,user,stat,pcpu,comm,wchan:32
    shell ss -ltn
    shell ss -tn
    shell nstat -asz
    database
}

once >"$file"
echo ready
while :; do
    one_round >>"$file"
    # A pause that a signal ends.
    sleep 1 &
    wait $!
done
