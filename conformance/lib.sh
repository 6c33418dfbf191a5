# shellcheck shell=bash
# Shared by the scripts of this folder, which source it.
#
# Environment: PINPATH, a built command to test instead of this checkout's release build; OPTIONS,
# more options for it, --passthrough say; TOOLS, the folder into which tools are installed once
# (default: in cargo's target folder).
set -euo pipefail

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
tools=${TOOLS:-${CARGO_TARGET_DIR:-$repository/target}/conformance}
pinpath=${PINPATH:-}
work=
daemon=

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Begins: a folder of our own that goes at the end, mounts first, and the command to test.
begin() {
    ((EUID == 0)) || die 'only root can run this: files of other users are made, and devices'
    [[ -c /dev/fuse ]] || die 'there is no /dev/fuse'
    work=$(mktemp -d "${TMPDIR:-/tmp}/pinpath-conformance.XXXXXX")
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    chmod 755 "$work" # other users come through here
    mkdir "$work/source" "$work/mnt"
    if [[ -z $pinpath ]]; then
        (cd "$repository" && timeout 900 cargo build --quiet --release -p pinpath-fuse)
        pinpath=$(realpath "${CARGO_TARGET_DIR:-$repository/target}/release/pinpath")
    fi
}

finish() {
    local status=$?
    trap - EXIT
    end_mount || true
    rm -rf --one-file-system -- "$work"
    exit "$status"
}

# install_tool CRATE VERSION: that version of a program, with the versions of its own lock file.
install_tool() {
    grep -qs "^\"$1 $2 " "$tools/.crates.toml" && return
    echo "installing $1 $2"
    timeout 900 cargo install --quiet "$1" --version "=$2" --locked --root "$tools" 2>&1
}

# debian PACKAGE...: installs what is missing.
debian() {
    local package missing=()
    for package; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    ((${#missing[@]} == 0)) && return
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    timeout 300 apt-get update -qq
    timeout 600 apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# mount_mirror OPTION...: $work/source on $work/mnt.
mount_mirror() {
    # shellcheck disable=SC2086 # several options
    (umask 0 && exec "$pinpath" mirror --allow-other -o suid,dev ${OPTIONS:-} "$@" "$work/source" "$work/mnt") \
        >"$work/daemon.log" 2>&1 </dev/null &
    daemon=$!
    local tenth
    for ((tenth = 0; tenth < 200; tenth++)); do
        grep -q 'is mounted on' "$work/daemon.log" && return
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/daemon.log" >&2
    die 'the mirror was not mounted'
}

# Ends the mount, and fails if the daemon doesn't end well. What hangs in it gets an error.
end_mount() {
    [[ -n $daemon ]] || return 0
    local pid=$daemon status=0
    daemon=
    timeout 20 umount "$work/mnt" 2>/dev/null || {
        kill -KILL "$pid" 2>/dev/null || true
        timeout 20 umount -l "$work/mnt" 2>/dev/null || true
    }
    # Its own end takes a moment; a daemon that hangs is killed.
    timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" || status=$?
    ((status == 0)) || cat "$work/daemon.log" >&2
    return "$status"
}

# Runs a command once for each cache mode, or for those in MODES.
each_mode() {
    local mode failed=0
    for mode in ${MODES:-none auto always}; do
        "$@" "$mode" || failed=1
    done
    return "$failed"
}
