#!/usr/bin/env bash
# Plays several hosts on one machine: N network namespaces on one bridge, each with an address of its own.
#
#   scripts/hosts.sh N COMMAND [ARGUMENT...]       runs COMMAND on every host at once; the status is the first that is not 0
#   scripts/hosts.sh 2 oflaunch --nnodes 2 --nproc 2 train.rs
#
# Words of the command: {node} is the host's number, {addr} its address, {first} the address of host 0. An `oflaunch` is given
# --node-rank and --rdzv, where they are missing. In the environment: OFLOW_ADDR, and OFLOW_TOKEN, the same on all hosts.
# HOSTS_DELAY=10ms, HOSTS_RATE=1gbit: how slow the links are (needs tc). HOSTS_NAME: prefix of the namespaces, to reach one
# from outside: `ip -n NAME1 link set eth0 down` cuts host 1 off.
set -euo pipefail

if [ $# -lt 2 ] || ! [[ $1 =~ ^[1-9][0-9]?$ ]]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
n=$1
shift
name=${HOSTS_NAME:-oflow$$n}
bridge=${name:0:12}br
port=${HOSTS_PORT:-29400}

if [ "$(id -u)" != 0 ]; then
    echo "hosts.sh: making network namespaces needs root (try: sudo -E $0 $n $*)" >&2
    exit 77
fi
command -v ip > /dev/null || { echo "hosts.sh: needs the command ip (package iproute2)" >&2; exit 77; }

pids=()
clean() {
    trap - EXIT INT TERM
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2> /dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2> /dev/null || true; done
    for ((k = 0; k < n; k++)); do ip netns del "$name$k" 2> /dev/null || true; done
    ip link del "$bridge" 2> /dev/null || true
}
trap clean EXIT
trap 'exit 130' INT TERM

if ! ip netns add "${name}0" 2> /tmp/hosts.$$; then
    echo "hosts.sh: this machine refuses network namespaces: $(cat /tmp/hosts.$$)" >&2
    echo "hosts.sh: play the hosts over the loopback interface instead: several oflaunch with --rdzv 127.0.0.1:$port" >&2
    rm -f /tmp/hosts.$$
    exit 77
fi
rm -f /tmp/hosts.$$
ip link add "$bridge" type bridge
ip link set "$bridge" up
for ((k = 0; k < n; k++)); do
    [ "$k" = 0 ] || ip netns add "$name$k"
    ip link add "${bridge}$k" type veth peer name eth0 netns "$name$k"
    ip link set "${bridge}$k" master "$bridge" up
    ip -n "$name$k" link set lo up
    ip -n "$name$k" addr add "10.77.0.$((k + 1))/24" dev eth0
    ip -n "$name$k" link set eth0 up
    # Fewer kernels have netem than tbf, which does without a delay.
    if [ -n "${HOSTS_DELAY:-}" ]; then
        ip netns exec "$name$k" tc qdisc add dev eth0 root netem delay "$HOSTS_DELAY" ${HOSTS_RATE:+rate $HOSTS_RATE}
    elif [ -n "${HOSTS_RATE:-}" ]; then
        ip netns exec "$name$k" tc qdisc add dev eth0 root tbf rate "$HOSTS_RATE" burst 256kb latency 400ms
    fi
done

token=${OFLOW_TOKEN:-$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')}
for ((k = 0; k < n; k++)); do
    words=()
    for word in "$@"; do
        word=${word//\{node\}/$k}
        word=${word//\{addr\}/10.77.0.$((k + 1))}
        words+=("${word//\{first\}/10.77.0.1}")
    done
    if [ "$(basename "${words[0]}")" = oflaunch ]; then
        more=()
        [[ " $* " == *" --node-rank"* ]] || more+=(--node-rank "$k")
        [[ " $* " == *" --rdzv"* ]] || more+=(--rdzv "10.77.0.1:$port")
        words=("${words[0]}" "${more[@]}" "${words[@]:1}")
    fi
    OFLOW_TOKEN=$token OFLOW_ADDR=10.77.0.$((k + 1)) HOST_NODE=$k ip netns exec "$name$k" "${words[@]}" &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    code=0
    wait "$pid" || code=$?
    [ "$status" != 0 ] || status=$code
done
exit "$status"
