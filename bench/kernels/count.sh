#!/bin/sh
# count.sh FOLDER: instructions of the modules that bench_code wrote there, as a driver sees them after inlining and
# unrolling: all, multiply-adds, basic blocks, loads and stores. Loops with several exits stay rolled here, drivers may
# unroll them all the same. Wants SPIRV-Tools: spirv-opt, spirv-dis.
set -eu
[ $# = 1 ] || { echo "usage: count.sh FOLDER" >&2; exit 2; }
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
clean="--ssa-rewrite --ccp --eliminate-dead-branches --merge-blocks --simplify-instructions --eliminate-dead-code-aggressive"
for file in $(ls "$1" | grep '^[0-9]*\.spv$' | sort -n); do
    # shellcheck disable=SC2086
    spirv-opt --merge-return --inline-entry-points-exhaustive --eliminate-dead-functions --merge-blocks \
        --convert-local-access-chains --eliminate-local-single-block --eliminate-local-single-store $clean --loop-unroll \
        $clean --scalar-replacement=0 --convert-local-access-chains $clean --redundancy-elimination $clean \
        "$1/$file" -o "$scratch" >/dev/null 2>&1 || { echo "$file: spirv-opt failed"; continue; }
    spirv-dis --no-color "$scratch" | awk -v name="${file%.spv}" '
        { for (i = 1; i <= NF; i++) if ($i ~ /^Op/) { n[$i]++; all++; break } }
        / Fma / { fma++ }
        END { printf "%4s %6d instructions %5d fma %4d blocks %5d loads and stores\n", name, all, fma, n["OpLabel"],
              n["OpLoad"] + n["OpStore"] }'
done
