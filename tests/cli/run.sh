#!/bin/sh
# tests/cli/run.sh BRAID CASE [bless]: runs CASE.sh in an empty folder and compares what it prints with CASE.out.
# In a case, `braid ...` prints the command, then its output and errors, then the exit code when it is not 0.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
BRAID=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
ROOT=$(cd "$here/../.." && pwd)
PYTHON=${PYTHON:-python3}
export BRAID ROOT PYTHON LC_ALL=C
export XDG_CACHE_HOME=cache
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/prelude" <<'END'
braid() {
    echo "\$ braid $*" | sed "s|$ROOT/||g"
    rc=0
    "$BRAID" "$@" >out.txt 2>&1 || rc=$?
    sed "s|$ROOT/||g" out.txt
    [ $rc = 0 ] || echo "exit code $rc"
}
END
mkdir "$scratch/work"
(cd "$scratch/work" && sh -eu -c '. ../prelude; . "$1"' case "$here/$2.sh") >"$scratch/out" 2>&1 || echo "the case itself failed" >>"$scratch/out"
if [ "${3:-}" = bless ]; then
    cp "$scratch/out" "$here/$2.out"
else
    diff -u "$here/$2.out" "$scratch/out"
fi
