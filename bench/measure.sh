#!/bin/sh
# measure.sh BRAID MODEL_DIR [DEVICE]: the measures of the benchmark models as a Markdown table.
#
# MODEL_DIR holds squeezenet_f32.onnx and its kin (and yolox_nano.onnx, if wanted). Every figure comes from
# `braid bench --json`; times are milliseconds. Session creation is timed with an empty and with a filled pipeline cache.
set -eu
braid=$1 models=$2 device=${3:-0}
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export XDG_CACHE_HOME="$cache"

field() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\|null\).*/\1/p" | head -1; }

"$braid" devices
echo
echo "| model | wall p50 | wall p99 | device p50 | create, cold | create, warm |"
echo "|---|---|---|---|---|---|"
for name in squeezenet_f32 mobilenet_v2_f32 resnet50_f32 cnn20_f32 mnist_b1_f32 bert_f32 yolox_nano; do
    file="$models/$name.onnx"
    [ -f "$file" ] || continue
    cold=$("$braid" bench "$file" --device "$device" --warmup 1 --runs 1 --json | field plan_ms)
    out=$("$braid" bench "$file" --device "$device" --warmup 5 --seconds 3 --json)
    echo "| $name | $(echo "$out" | field wall_p50_ms) | $(echo "$out" | field wall_p99_ms) |" \
        "$(echo "$out" | field device_p50_ms) | $cold | $(echo "$out" | field plan_ms) |"
done
