#!/bin/sh
# tools/check.sh DIR JOBS [long]: builds and runs the tests; `long` runs the whole suite under the sanitizers instead.
set -eu
cd "$(dirname "$0")/.."
dir=$1 jobs=$2 long=${3:-}

suite() { # DIR PRESET [CTEST-OPTION ...]
    suite_dir=$1 suite_preset=$2
    shift 2
    tools/build.sh "$suite_dir" "$suite_preset" -DBRAID_TESTS=ON
    ctest --test-dir "$suite_dir" --output-on-failure -j "$jobs" --no-tests=error "$@"
}

if [ -z "$long" ]; then
    suite "$dir" release
    suite "$dir-asan" asan -L quick
    exit 0
fi

failed=
suite "$dir-asan" asan || failed="$failed asan"
suite "$dir-tsan" tsan -L 'quick|thread' || failed="$failed tsan"
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT
suite "$dir" release -L onnx || failed="$failed gpu-av"
[ -z "$failed" ] || { echo "check-long: failed:$failed" >&2; exit 1; }
