#!/bin/sh
# tools/check.sh DIR JOBS [long]: builds and runs the tests.
#
# short: every test of the release build, the quick ones under ASan and UBSan, each fuzz target for FUZZ_SECONDS (60).
# long:  every test under ASan and UBSan, the quick ones under TSan, conformance under GPU-assisted validation, fuzzing.
set -eu
cd "$(dirname "$0")/.."
dir=$1 jobs=$2 long=${3:-}

export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS=ignore_noninstrumented_modules=1

suite() { # DIR PRESET [CTEST-OPTION ...]
    suite_dir=$1 suite_preset=$2
    shift 2
    tools/build.sh "$suite_dir" "$suite_preset" -DBRAID_TESTS=ON || return 1
    ctest --test-dir "$suite_dir" --output-on-failure -j "$jobs" --no-tests=error "$@"
}

# Other drivers leak when they find no hardware and are unloaded before the leak report could name them.
only_software() {
    for file in /usr/share/vulkan/icd.d/lvp_icd*.json; do
        [ ! -e "$file" ] || export VK_DRIVER_FILES="$file" VK_ICD_FILENAMES="$file"
    done
}

# New inputs go to the build folder; the committed corpus is only read.
fuzz() { # DIR SECONDS
    tools/build.sh "$1" fuzz -DBRAID_TESTS=ON || return 1
    running=
    for target in tests/fuzz/fuzz_*.c; do
        name=$(basename "$target" .c)
        found=$1/found/$name
        mkdir -p "$found"
        echo "fuzzing $name for $2 s"
        "$1/tests/fuzz/$name" "$found" "tests/fuzz/corpus/${name#fuzz_}" -max_total_time="$2" -timeout=10 \
            -rss_limit_mb=2048 -artifact_prefix="$found-" >"$found.log" 2>&1 &
        running="$running $!:$name"
    done
    for one in $running; do
        wait "${one%%:*}" || { tail -n 40 "$1/found/${one#*:}.log"; echo "fuzz: ${one#*:} failed" >&2; return 1; }
    done
}

if [ -z "$long" ]; then
    suite "$dir" release
    only_software
    suite "$dir-asan" asan -L quick
    fuzz "$dir-fuzz" "${FUZZ_SECONDS:-60}"
    exit 0
fi

failed=
(only_software && suite "$dir-asan" asan) || failed="$failed asan"
(only_software && suite "$dir-tsan" tsan -L quick) || failed="$failed tsan"
(
    export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
    export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT
    suite "$dir" release -L onnx
) || failed="$failed gpu-av"
(fuzz "$dir-fuzz" "${FUZZ_SECONDS:-600}") || failed="$failed fuzz"
[ -z "$failed" ] || { echo "check-long: failed:$failed" >&2; exit 1; }
echo "check-long: all passed"
