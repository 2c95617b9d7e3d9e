#!/usr/bin/env bash
# Runs one job on several "hosts" of this machine: network namespaces, joined by a bridge. Needs root, ip and, for --rate and
# --delay, tc.
#
#   scripts/hosts.sh [--hosts 2] [--nproc 2] [--cut S] [--rate 100mbit] [--delay 1ms] PROGRAM [ARGS...]
#
# --cut S takes the interface of the last host down after S seconds. OFLAUNCH names the launcher, OFLAUNCH_OPTIONS further
# options for it. At the end the bytes that each host's interface sent and received are printed to stderr. The exit code is
# that of node 0.
set -euo pipefail

hosts=2 nproc=2 cut='' rate='' delay=''
while [ $# -gt 0 ]; do
    case "$1" in
        --hosts) hosts=$2; shift 2 ;;
        --nproc) nproc=$2; shift 2 ;;
        --cut) cut=$2; shift 2 ;;
        --rate) rate=$2; shift 2 ;;
        --delay) delay=$2; shift 2 ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || { echo "hosts.sh: no PROGRAM; see --help" >&2; exit 2; }
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
oflaunch="${OFLAUNCH:-${CARGO_TARGET_DIR:-$root/target}/release/oflaunch}"
[ -x "$oflaunch" ] || { echo "hosts.sh: no launcher at $oflaunch; build it, or name it in OFLAUNCH" >&2; exit 2; }

# Names of our own, so that several runs of this script do not meet.
id="of$$"
pids=()
clean() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for ((h = 0; h < hosts; h++)); do ip netns del "$id-$h" 2>/dev/null || true; done
    ip link del "$id" 2>/dev/null || true
    [ -z "${token:-}" ] || rm -f "$token"
}
trap clean EXIT

ip link add "$id" type bridge || { echo "hosts.sh: no bridge can be made here (root? kernel?)" >&2; exit 3; }
ip link set "$id" up
for ((h = 0; h < hosts; h++)); do
    ip netns add "$id-$h"
    ip link add "$id.$h" type veth peer name eth0 netns "$id-$h"
    ip link set "$id.$h" master "$id" up
    ip -n "$id-$h" addr add "10.77.0.$((h + 1))/24" dev eth0
    ip -n "$id-$h" link set eth0 up
    ip -n "$id-$h" link set lo up
    if [ -n "$rate$delay" ]; then
        tc -n "$id-$h" qdisc add dev eth0 root netem ${delay:+delay "$delay"} ${rate:+rate "$rate"}
    fi
done

token="$(mktemp)"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$token"
program=$1
shift
for ((h = 0; h < hosts; h++)); do
    # shellcheck disable=SC2086 # several words on purpose
    ip netns exec "$id-$h" "$oflaunch" -n "$nproc" --nnodes "$hosts" --node-rank "$h" --rdzv 10.77.0.1:29500 \
        --token-file "$token" ${OFLAUNCH_OPTIONS:-} "$program" -- "$@" &
    pids+=($!)
done
if [ -n "$cut" ]; then
    sleep "$cut"
    ip -n "$id-$((hosts - 1))" link set eth0 down
    echo "hosts.sh: cut at $(date +%s.%N)" >&2
fi
code=0
wait "${pids[0]}" || code=$?
for ((h = 1; h < hosts; h++)); do wait "${pids[$h]}" || true; done
for ((h = 0; h < hosts; h++)); do
    stat() { ip netns exec "$id-$h" cat "/sys/class/net/eth0/statistics/$1_bytes"; }
    echo "hosts.sh: host $h sent $(stat tx) bytes, received $(stat rx)" >&2
done
exit "$code"
