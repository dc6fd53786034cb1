#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Compiles the scenario programs into target/peers/ns3/. A program is compiled again only when its source, a header,
# this script, the compiler or ns-3 is another than last time.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${CARGO_TARGET_DIR:-$here/../../target}/peers/ns3
cxx=${CXX:-g++}
flags="-std=c++17 -O3 -march=native -DNDEBUG -Wall -Wextra"
wifi="wifi energy spectrum antenna propagation mobility network stats core"

fail() {
    echo "peers/ns3: $1" >&2
    exit 1
}
command -v "$cxx" >/dev/null || fail "there is no C++ compiler '$cxx': apt-get install g++"
installed=$(dpkg-query -W -f '${Version}' libns3-dev 2>/dev/null) || installed=
[ -n "$installed" ] || fail "ns-3 is not installed: apt-get install ns3 libns3-dev"
version=${installed%%[-+]*}

mkdir -p "$out"
for program in ${*:-saturation oneshot grid beacons chain}; do
    source=$here/$program.cc
    [ -f "$source" ] || fail "there is no program '$program'"
    # only what a program needs: each library loaded counts in its memory
    case $program in
        chain) modules="applications internet traffic-control bridge $wifi" ;;
        grid) modules="internet traffic-control bridge $wifi" ;;
        *) modules=$wifi ;;
    esac
    libraries=
    for module in $modules; do
        libraries="$libraries -lns3-$module"
    done
    now=$( (cat "$source" "$here/peer.h" "$here/ip.h" "$here/build.sh"; "$cxx" --version; echo "$installed") | sha256sum)
    if [ -x "$out/$program" ] && [ "$(cat "$out/$program.built" 2>/dev/null)" = "$now" ]; then
        continue
    fi
    echo "compiling $program against ns-3 $version" >&2
    rm -f "$out/$program.built"
    # shellcheck disable=SC2086
    "$cxx" $flags "-DNS3_VERSION=\"$version\"" "$source" -o "$out/$program" $libraries
    echo "$now" >"$out/$program.built"
done
