#!/bin/sh
# tests/install/run.sh BUILD: what `make install` puts down works for a C program through pkg-config and through CMake,
# and the library exports nothing but braid_*.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
cmake --install "$1" --prefix "$prefix" >/dev/null
fail() { echo "install: $*" >&2; exit 1; }

library=$(find "$prefix" -name 'libbraid.so.0')
[ -n "$library" ] || fail "no libbraid.so.0"
readelf -d "$library" | grep -q 'SONAME.*libbraid.so.0' || fail "no SONAME"
other=$(nm -D --defined-only "$library" | awk '$3 !~ /^braid_/ { print $3 }')
[ -z "$other" ] || fail "exports more than braid_*: $other"
"$prefix/bin/braid" --version

# the example of the README is this file, and the examples run
$PYTHON - "$root" <<'END' || fail "README.md does not show examples/lanes.c as it is"
import pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.exit((root / "examples/lanes.c").read_text() not in (root / "README.md").read_text())
END
libdir=$(dirname "$library")
export PKG_CONFIG_PATH=$libdir/pkgconfig
cc "$root/examples/run.c" -o "$scratch/a" $(pkg-config --cflags --libs braid)
LD_LIBRARY_PATH=$libdir "$scratch/a" "$root/examples/digits/digits.onnx" >"$scratch/a.txt"
[ "$(wc -l <"$scratch/a.txt")" = 10 ] || fail "run.c printed something else"
cc "$root/examples/lanes.c" -o "$scratch/lanes" $(pkg-config --cflags --libs braid)
LD_LIBRARY_PATH=$libdir "$scratch/lanes" "$root/examples/digits/digits.onnx" "$root/examples/digits/64.gray" >"$scratch/lanes.txt"
ls "$root/examples/digits/images" | head -64 | sed 's/.*-//; s/\.png//' >"$scratch/digits.txt"
right=$(tr ' ' '\n' <"$scratch/lanes.txt" | sed '/^$/d' | paste - "$scratch/digits.txt" | awk '$1 == $2' | wc -l)
[ "$right" = 63 ] || fail "lanes.c reads $right of 64 images right, not 63"

# the others, as strictly as the library itself is compiled
digits=$root/examples/digits
for example in "$root"/examples/*.c; do
    name=$(basename "$example" .c)
    cc -std=c17 -Wall -Wextra -Wconversion -Wshadow -Wvla -Werror -pthread "$example" -o "$scratch/$name" \
        $(pkg-config --cflags --libs braid)
    [ "$(wc -l <"$example")" -lt 80 ] || fail "$name.c has 80 lines or more"
done
example() { # NAME ARGUMENT ...: what it prints
    XDG_CACHE_HOME=$scratch/cache LD_LIBRARY_PATH=$libdir "$scratch/$@" 2>&1 || echo "exit code $?"
}
expect() { # PATTERN WHAT...
    pattern=$1; shift
    said=$(example "$@")
    echo "$said" | grep -q "$pattern" || fail "$*: no '$pattern' in: $said"
}
expect '^input   image: float32 \[1,1,8,8\]$' io "$digits/digits.onnx"
expect '^output  logits: float32 \[1,10\]$' io "$digits/digits.onnx"
expect '^exit code 1$' io "$digits/64.gray"
expect '^64 of 64 served$' service "$digits/digits.onnx" "$digits/64.gray"
expect '^7 steps in 7 waves' look "$digits/digits.onnx"
expect '^from the CPU reference at most [0-9.]*e-' look "$digits/digits.onnx"
expect '^measured: barrier' devices
expect '^known: barrier' devices
expect "^NO_DEVICE (no device): " devices nothing
expect '^exit code 1$' devices nothing

mkdir "$scratch/user"
cat >"$scratch/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(braid 0.1 REQUIRED)
add_executable(b $root/examples/run.c)
target_link_libraries(b braid::braid)
END
cmake -S "$scratch/user" -B "$scratch/user/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/user/build" >/dev/null
"$scratch/user/build/b" "$root/examples/digits/digits.onnx" | cmp - "$scratch/a.txt"
