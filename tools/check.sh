#!/bin/sh
# tools/check.sh DIR JOBS [long]: builds and runs the tests.
#
# short: every test of the release build, the quick ones under ASan and UBSan, each fuzz target for FUZZ_SECONDS (60).
# long:  every test under ASan and UBSan, those of threads under TSan, those of operators under core
#        validation and a model of each kind under GPU-assisted validation without a message, fuzzing for FUZZ_SECONDS
#        (600).
set -eu
cd "$(dirname "$0")/.."
dir=$1 jobs=$2 long=${3:-}

export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
# lavapipe takes each work group's registers from the heap. ASan gives such sizes pages of their own, and hundreds of
# megabytes in quarantine turn a second of kernels into minutes of page faults.
export ASAN_OPTIONS=quarantine_size_mb=4
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

can_fuzz() {
    mkdir -p "$1"
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >"$1/probe.c"
    clang -fsanitize=fuzzer,address "$1/probe.c" -o "$1/probe" 2>/dev/null
}

# Two targets at a time. New inputs go to the build folder; the committed corpus is only read.
fuzz() { # DIR SECONDS
    can_fuzz "$1" || { echo "fuzz: SKIPPED, no clang with libFuzzer (packages clang, libclang-rt-dev)"; return 0; }
    BUILD_ONLY=fuzz tools/build.sh "$1" fuzz -DBRAID_TESTS=ON -DBRAID_FUZZ_SECONDS="$2" || return 1
    ctest --test-dir "$1" --output-on-failure -j 2 --no-tests=error -L libfuzzer
}

# The driver takes up to a minute to compile one instrumented kernel, so this is a conformance test for each kind only.
gpu_assisted() { # DIR
    ctest --test-dir "$1" -R '^onnx\.data$' --output-on-failure || return 1
    for name in relu add_bcast matmul_3d gemm_all_attributes conv_with_strides_padding maxpool_2d_default \
        reduce_sum_keepdims_random softmax_example layer_normalization_2d_axis0 transpose_all_permutations_0 gather_0 \
        scatter_elements_with_axis concat_2d_axis_0 constant_pad top_k cumsum_1d resize_upsample_scales_nearest; do
        model=$1/conformance/node/test_$name
        said=$(VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT "$1/braid" check "$model/model.onnx" \
            "$model/test_data_set_0" --validation --no-cache 2>&1) || { echo "$said" >&2; return 1; }
        case $said in *validation*) echo "gpu-av: $name: $said" >&2; return 1 ;; esac
        echo "gpu-av: $name: clean"
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
(only_software && suite "$dir-tsan" tsan -L thread) || failed="$failed tsan"
export BRAID_TEST_VALIDATION=1
(suite "$dir" release -L gpu) || failed="$failed validation"
unset BRAID_TEST_VALIDATION
(gpu_assisted "$dir") || failed="$failed gpu-av"
(fuzz "$dir-fuzz" "${FUZZ_SECONDS:-600}") || failed="$failed fuzz"
[ -z "$failed" ] || { echo "check-long: failed:$failed" >&2; exit 1; }
echo "check-long: all passed"
