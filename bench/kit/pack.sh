#!/bin/sh
# pack.sh BUILD DIR [--models FOLDER]... [--make SCRIPT] [--wheels FOLDER] [--programs A,B,...]: a folder that proves and
# measures a build on another machine (README.md). BUILD is a build tree with tests.
#
# --models    folders of models, of the tests (shared/models, rapidocr's) and of the benchmarks; copied to DIR/models
# --make      a Python script; SCRIPT OUT conv bert clone writes the benchmarks' models, there instead of here
# --wheels    Python wheels for there (onnxruntime-webgpu); copied, unpacked by the step that wants them
# --programs  only these programs of tests, e.g. unit_api_lanes,model_lanes
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
shift 2
programs=
rm -rf "$dir/bin" "$dir/lib"
mkdir -p "$dir/bin" "$dir/lib" "$dir/models" "$dir/wheels"
while [ $# -gt 1 ]; do
    case $1 in
        --models) cp -RLf "$2"/. "$dir/models" && chmod -R u+w "$dir/models" ;;
        --make) cp -f "$2" "$dir/make_models.py" ;;
        --wheels) cp -f "$2"/*.whl "$dir/wheels" ;;
        --programs) programs=,$2, ;;
        *) echo "pack.sh: $1?" >&2; exit 2 ;;
    esac
    shift 2
done
[ $# = 0 ] || { echo "pack.sh: $1 wants a value" >&2; exit 2; }

program() { # FILE [NAME]: without symbols
    name=${2:-$(basename "$1")}
    case ${programs:-,$name,},braid.bin, in *,"$name",*) ;; *) return 0 ;; esac
    [ -f "$1" ] || return 0
    strip -o "$dir/bin/$name" "$1"
}
program "$build/braid" braid.bin
cp -Lf "$build/libbraid.so.0" "$dir/lib"
for file in "$build"/tests/unit_* "$build"/tests/models/model_* "$build"/tests/fuzz/random_* \
    "$build/tests/onnx/onnx_run" "$build/bench/bench_mm"; do
    [ ! -x "$file" ] || [ -d "$file" ] || program "$file"
done

# Everything they need but the C library, which has to be the machine's.
for file in "$dir"/bin/*; do
    LD_LIBRARY_PATH="$dir/lib" ldd "$file"
done 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r file; do
    case $(basename "$file") in
        libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libbraid.so* | ld-linux*) ;;
        *) cp -Lf "$file" "$dir/lib" ;;
    esac
done
cat >"$dir/bin/braid" <<'EOF'
#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH="$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/braid.bin" "$@"
EOF
cat >"$dir/go.sh" <<'EOF'
#!/bin/sh
exec "${PYTHON:-python3}" -B "$(dirname "$0")/bench/kit/go.py" "$@"
EOF
chmod +x "$dir/bin/braid" "$dir/go.sh"

(cd "$root" && tar -cf - --exclude=__pycache__ bench tests/models/run.py tests/onnx/generate.py tests/onnx/index.tsv \
    tests/onnx/expected.tsv examples/digits/digits.onnx) | tar -xf - -C "$dir"
(cd "$build" && ctest --show-only=json-v1) | "${PYTHON:-python3}" "$root/bench/kit/tests.py" "$dir/bin" >"$dir/tests.json"
git -C "$root" describe --always --dirty --exclude='*' >"$dir/revision" 2>/dev/null || echo unnamed >"$dir/revision"
du -sh "$dir"
