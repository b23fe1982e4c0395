#!/bin/sh
# Everything that holds lanes bit-equal to runs alone, within a time, for one device: also on a machine without CMake and
# Python. Wants the built programs under BUILD. MODELS names the folder of models, left out when empty; they also want
# `cmake --build BUILD --target lanes_script`, made before.
#     MODELS=shared/models tests/lanes.sh BUILD [SECONDS_EACH]
build=$1 seconds=${2:-60}
failed=0
run() { # name, command...
    name=$1
    shift
    if timeout "$seconds" "$@" >"${TMPDIR:-/tmp}/lanes.$$" 2>&1; then
        echo "ok      $name"
    elif [ $? = 124 ]; then
        echo "cut     $name after $seconds s"
    else
        echo "FAILED  $name"
        grep -v -e ' RUN ' -e ' OK ' "${TMPDIR:-/tmp}/lanes.$$" | head -40
        failed=1
    fi
}
for test in api_lanes api_lanes_bad lanes_cases; do run "$test" "$build/tests/unit_$test"; done
run lanes_products env BRAID_TEST_ALL=60 BRAID_TEST_SEED=2 "$build/tests/unit_lanes_products"
run ops_table_lanes env BRAID_TEST_ALL=1 "$build/tests/unit_ops_table_lanes"
for test in ops_product_gpu ops_reduce_gpu ops_move_gpu ops_window_gpu map_device; do
    run "$test" env BRAID_TEST_LANES=1 "$build/tests/unit_$test"
done
run random_graphs "$build/tests/fuzz/random_graphs" --seed 700001 --count 100000 --lanes 45 --nodes 16 --seconds $((seconds * 3 / 4))
grep 'runs with lanes' "${TMPDIR:-/tmp}/lanes.$$" | tail -1
rm -f "${TMPDIR:-/tmp}/lanes.$$"
if [ -n "$MODELS" ]; then
    LANES=$build/tests/models/model_lanes sh "$build/tests/models/lanes.sh" --seconds "$seconds" || failed=1
fi
exit $failed
