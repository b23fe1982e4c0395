#!/bin/sh
# Names what braid needs and this system lacks, and installs it.
#
#     tools/deps.sh [--check] build|demo|all
#
# build: compiler, libraries, shader compiler. demo: also a Vulkan driver. all: also what the tests need.
# --check only names what is missing and fails. YES=1 answers the question asked before apt's sources change.
# Packages come from apt (Debian 12, Debian 13, Ubuntu 24.04), Python packages go into .venv beside this folder.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "deps: $*" >&2; exit 1; }

check=
[ "${1:-}" = --check ] && { check=1; shift; }
level=${1:-all}

. /etc/os-release
system="${ID:-unknown} ${VERSION_ID:-}"

common="gcc libc6-dev make cmake ninja-build pkg-config libvulkan-dev libpng-dev libjpeg-dev libjansson-dev libzip-dev"
driver="libvulkan1 mesa-vulkan-drivers"
tests="python3 python3-venv libcmocka-dev clang libclang-rt-dev vulkan-validationlayers"
python_build= backports=

case "$system" in
"debian 12")
    # its glslang knows no cooperative matrices, its Mesa stops every shader loop at 65,535 turns
    common="$common python3 python3-venv"
    python_build=tools/requirements-glslang.txt
    backports=bookworm-backports
    ;;
"debian 13") common="$common glslang-tools" ;;
"ubuntu 24.04") common="$common glslang-tools" ;;
*) fail "unknown system '$system': install by hand: $common glslang-tools $driver $tests, then the Python packages of tests/requirements.txt into .venv" ;;
esac

case "$level" in
build) packages=$common requirements=$python_build ;;
demo) packages="$common $driver" requirements=$python_build ;;
all) packages="$common $driver $tests" requirements="$python_build tests/requirements.txt" ;;
*) fail "usage: tools/deps.sh [--check] build|demo|all" ;;
esac

# ---- what is missing

installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

old_mesa() {
    [ -n "$backports" ] || return 1
    case " $packages " in *" mesa-vulkan-drivers "*) ;; *) return 1 ;; esac
    version=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null || echo 0)
    dpkg --compare-versions "${version:-0}" lt 25
}

missing_packages=
for p in $packages; do
    installed "$p" || missing_packages="$missing_packages $p"
done
if old_mesa; then
    missing_packages=$(echo "$missing_packages" | sed 's/ mesa-vulkan-drivers//')
    mesa="mesa-vulkan-drivers>=25"
else
    mesa=
fi

# Exit 0 when .venv holds every NAME==VERSION of the files.
python_has() {
    [ -x .venv/bin/python ] && .venv/bin/python - "$@" <<'END' 2>/dev/null
import importlib.metadata, sys
for path in sys.argv[1:]:
    for line in open(path):
        name, mark, version = line.split("#")[0].strip().partition("==")
        if mark and importlib.metadata.version(name) != version:
            sys.exit(1)
END
}

missing_python=
for r in $requirements; do
    python_has "$r" || missing_python="$missing_python $r"
done

[ -n "$missing_packages$mesa$missing_python" ] || exit 0

echo "deps: missing:$missing_packages${mesa:+ $mesa}${missing_python:+ (Python:$(cat $missing_python | sed 's/#.*//' | tr -s '\n' ' ' | sed 's/^/ /'))}"
[ -z "$check" ] || fail "run 'make deps' to install it"

# ---- apt

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "not root and no sudo; as root run: $*"
    fi
}

apt_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; }

# The site that the release itself comes from, so that a mirror or proxy in use here is kept.
mirror() {
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SITE) $(CREATED_BY)' |
        awk -v release="${VERSION_CODENAME:-}" '$1 == release && $2 == "main" && $4 == "Packages" { print $3; exit }'
}

add_backports() {
    apt-get indextargets --format '$(RELEASE)' | grep -qx "$backports" && return 0
    site=$(mirror)
    [ -n "$site" ] || fail "apt has no source for '${VERSION_CODENAME:-}'; add $backports by hand"
    line="deb $site $backports main"
    file=/etc/apt/sources.list.d/$backports.list
    if [ -z "${YES:-}" ] && [ -t 0 ]; then
        printf 'deps: Mesa 25 needs one more apt source: "%s" in %s. Add it? [y/N] ' "$line" "$file"
        read -r answer
        case "$answer" in y | Y | yes) ;; *) fail "not added; without it set up Mesa >= 25 by hand" ;; esac
    fi
    echo "$line" | as_root tee "$file" >/dev/null
}

if [ -n "$missing_packages$mesa" ]; then
    [ -z "$mesa" ] || add_backports
    as_root apt-get update -q
    [ -z "$missing_packages" ] || apt_install $missing_packages
    [ -z "$mesa" ] || apt_install -t "$backports" mesa-vulkan-drivers
fi

# ---- Python packages

if [ -n "$missing_python" ]; then
    [ -x .venv/bin/python ] || /usr/bin/python3 -m venv .venv
    for r in $missing_python; do
        # every package is listed with its version, so nothing more is resolved
        .venv/bin/python -m pip install -q --no-deps --disable-pip-version-check -r "$r"
    done
fi
