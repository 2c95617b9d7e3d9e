#!/usr/bin/env bash
# Losses that an example printed, and whether those of two runs agree.
#
#   scripts/losses.sh list OUTPUT                        one line for each step: number and loss
#   scripts/losses.sh agree OTHER TOLERANCE COMMAND...   runs COMMAND, an example, and compares its losses with those in OTHER
#
# OUTPUT and OTHER are files with the output of an example: `step 3/20: loss 2.1 (4.2 ms)` for each step, maybe after `[rank 0] `. A
# step that was run again after a restart has the later loss. Losses agree if they differ by TOLERANCE at most, relative above 1; a NaN
# does not agree. Exit code: that of COMMAND if it fails, else 0 if all losses agree, 1 if not.
set -euo pipefail
export LC_ALL=C

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

list() {
    sed -nE 's/^(\[rank 0\] )?step ([0-9]+)\/[0-9]+: loss ([^ ]+).*$/\2 \3/p' "$1" |
        awk '{ loss[$1] = $2; if ($1 > last) last = $1 } END { for (i = 1; i <= last; i++) if (i in loss) print i, loss[i] }'
}

case ${1:-} in
    list)
        [ $# = 2 ] || usage
        list "$2"
        ;;
    agree)
        [ $# -ge 4 ] || usage
        other=$2 tolerance=$3
        shift 3
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        "$@" | tee "$work/output"
        list "$other" > "$work/other"
        list "$work/output" > "$work/own"
        awk -v most="$tolerance" -v other="$other" '
            function bad(x) { return tolower(x) ~ /nan|inf/ }
            function abs(x) { return x < 0 ? -x : x }
            NR == FNR { want[$1] = $2; n++; next }
            {
                count++
                if (!($1 in want)) { print "step " $1 " has no loss in " other; failed = 1; exit }
                gap = abs($2 - want[$1]); size = abs(want[$1])
                if (size > 1) gap /= size
                if (bad($2) || bad(want[$1]) || gap > most) {
                    print "step " $1 ": loss " $2 " here, " want[$1] " in " other ": they differ by more than " most
                    failed = 1
                    exit
                }
                if (gap > largest) largest = gap
            }
            END {
                if (failed) exit 1
                if (count != n || n == 0) { print "this run has " count + 0 " losses, " other " has " n + 0; exit 1 }
                printf "%d losses agree with %s: they differ by %.1e at most\n", count, other, largest
            }' "$work/other" "$work/own"
        ;;
    *) usage ;;
esac
