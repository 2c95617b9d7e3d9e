#!/usr/bin/env bash
# Outages of the network between hosts that are played on one machine, at random moments of a training whose losses are compared, bit by
# bit, with those of a training without outages.
#
#   scripts/outages.sh HOSTS SECONDS one|both TIMES TRAIN [ARGUMENT...]
#   scripts/outages.sh 2 9 both 20 target/release/examples/train --steps 20000 --epochs 10000
#
# TRAIN is the built example `train`. Every host has one rank. `one`: what one host sends does not arrive; `both`: nothing from it or
# to it does. The host is another one each time. Between two outages are 3 to 5 seconds: in a shorter time the kernel need not send
# again, and the two are one. OUTAGE_OPTIONS: further options of oflaunch. WANTED: a file that keeps the losses of the training without
# outages for the next call. Needs root, `ip` and an `oflaunch` in PATH; see hosts.sh.
set -euo pipefail

if [ $# -lt 5 ]; then
    sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
n=$1 seconds=$2 way=$3 times=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
name=oo$$n
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A host that cannot be reached: the others have a wrong address of its card.
wrong="lladdr 02:00:00:00:00:ff nud permanent dev eth0"
lossy() { # add|del, sender, receiver
    # The namespace is gone when the job has ended.
    if [ "$1" = add ]; then
        ip -n "$name$2" neigh replace "10.77.0.$(($3 + 1))" $wrong 2> /dev/null || true
    else
        ip -n "$name$2" neigh del "10.77.0.$(($3 + 1))" dev eth0 2> /dev/null || true
    fi
}
outage() { # add|del, host
    for ((k = 0; k < n; k++)); do
        if [ "$k" != "$2" ]; then
            lossy "$1" "$2" "$k"
            [ "$way" = one ] || lossy "$1" "$k" "$2"
        fi
    done
}

wanted=${WANTED:-$work/wanted}
if ! [ -s "$wanted" ]; then
    OFLOW_MODEL=default oflaunch -n "$n" --threads 1 "$1" -- "${@:2}" > "$work/out" 2> "$work/err" || { cat "$work/err"; exit 1; }
    "$here/losses.sh" list "$work/out" > "$wanted"
fi
# The port is free to all: each run has namespaces of its own.
HOSTS_NAME=$name OFLOW_MODEL=default "$here/hosts.sh" "$n" oflaunch -n 1 --threads 1 --nnodes "$n" ${OUTAGE_OPTIONS:-} "$1" -- "${@:2}" \
    > "$work/out" 2> "$work/err" &
job=$!
until grep -qs ' parameters on ' "$work/out" || ! kill -0 $job 2> /dev/null; do sleep 0.1; done
there=0
for ((i = 0; i < times; i++)); do
    [ "$i" = 0 ] || sleep 3
    sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.3f", r / 32768 * 2 }')"
    kill -0 $job 2> /dev/null || break
    host=$((RANDOM % n))
    outage add $host
    sleep "$seconds"
    outage del $host
    there=$((there + 1))
done
status=0
wait $job || status=$?
same=no
"$here/losses.sh" list "$work/out" > "$work/losses"
cmp -s "$wanted" "$work/losses" && same=yes
restarts=$(grep -c 'oflaunch: start ' "$work/err" || true)
echo "$n hosts, $seconds s, $way: $there outages, exit $status, same bits: $same, lines about restarts: $restarts"
if [ $status != 0 ] || [ $same != yes ]; then
    cat "$work/err"
    exit 1
fi
