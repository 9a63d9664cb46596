#!/bin/sh
# Runs a command in the cgroup whose path is in FILE (memory-cgroup.sh), in this very process: in-cgroup.sh FILE COMMAND...
set -eu
file=${1:?usage: in-cgroup.sh FILE COMMAND...}
shift
echo $$ >"$(cat "$file")/cgroup.procs"
exec "$@"
