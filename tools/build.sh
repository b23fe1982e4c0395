#!/bin/sh
# tools/build.sh DIR PRESET [CMAKE-OPTION ...]: configures when needed and builds, all or the target BUILD_ONLY.
set -eu
cd "$(dirname "$0")/.."
dir=$1 preset=$2
shift 2
log=$dir/configure.log
mkdir -p "$dir"
cmake --preset "$preset" -B "$dir" "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo "building in $dir"
cmake --build "$dir" ${BUILD_ONLY:+--target "$BUILD_ONLY"} -- --quiet
