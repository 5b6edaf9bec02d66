# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The script that every pod of a native PERSIA job runs, and the contract it keeps.

PERSIA's processes find each other once, at their start. A replaced embedding server has lost what the trainers
told it, and trainers that were replaced have lost their data loaders' batches. The script therefore watches the
addresses behind the groups' headless Services and makes the parts that are left begin again together; the
training itself resumes from its checkpoint. No controller is needed for that, and no access to the API server.
"""

from __future__ import annotations

EXIT_PEER_REPLACED = 75
EXIT_MISCONFIGURED = 78

SUCCESS_DIR = "/run/muster"
SUCCESS_FILE = f"{SUCCESS_DIR}/success"

LAUNCH_SCRIPT = r"""#!/bin/sh
# Starts one role of PERSIA: launch.sh nn-worker|data-loader|embedding-worker|embedding-parameter-server
#
# Exit status: 0 done; 75 another part of the training was replaced, start me again; 78 wrong configuration,
# starting again does not help; anything else is the launcher's own.
set -u

role="${1:?role}"
: "${REPLICA_INDEX:=${HOSTNAME##*-}}" "${REPLICA_SIZE:=1}" "${NPROC_PER_NODE:=1}"
: "${MUSTER_PEERS:=}" "${MUSTER_PEER_TIMEOUT:=600}" "${MUSTER_WATCH_INTERVAL:=5}"
export REPLICA_INDEX REPLICA_SIZE
child=
replaced=
stopping=

say() { echo "launch.sh: $*" >&2; }

# The reason goes where Kubernetes shows it: kubectl describe pod, and job_info.
leave() {
    status=$1
    shift
    [ $# -eq 0 ] || { say "$*"; printf '%s\n' "$*" 2>/dev/null >/dev/termination-log; }
    exit "$status"
}

must_read() { [ -r "$2" ] || leave 78 "$1=$2 cannot be read in this pod"; }

# One line per service of MUSTER_PEERS (service:count ...) with its addresses; fails while any is incomplete.
peers() {
    for peer in $MUSTER_PEERS; do
        found=$(getent ahosts "${peer%:*}" | awk '{ print $1 }' | sort -u)
        [ "$(printf '%s\n' "$found" | grep -c .)" -eq "${peer##*:}" ] || { echo "${peer%:*}"; return 1; }
        echo "${peer%:*}" $found
    done
}

wait_for_peers() {
    waited=0
    until known=$(peers); do
        [ -z "$stopping" ] || return
        [ "$waited" -lt "$MUSTER_PEER_TIMEOUT" ] ||
            leave 1 "gave up after $waited s: not every pod of $(printf '%s\n' "$known" | tail -n 1) has an address"
        sleep 1
        waited=$((waited + 1))
    done
}

# Only a complete answer counts: while a pod is missing there is nobody to begin again with.
watch_peers() {
    while sleep "$MUSTER_WATCH_INTERVAL"; do
        now=$(peers) || continue
        [ "$now" = "$known" ] || { kill -s USR1 $$; return; }
    done
}

# The role runs in a session of its own, so that a signal reaches torch's and the launcher's children too.
end_child() {
    [ -n "$child" ] || return 0
    kill -s TERM -- "-$child" 2>/dev/null
    ( sleep 10; kill -s KILL -- "-$child" ) >/dev/null 2>&1 &
}

run() {
    replaced=
    setsid "$@" &
    child=$!
    watcher=
    [ -z "$MUSTER_PEERS" ] || { watch_peers >/dev/null 2>&1 & watcher=$!; }
    while :; do
        wait "$child"
        code=$?
        # A signal ends wait early: the child is still there then.
        kill -0 "$child" 2>/dev/null || break
    done
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    child=
}

trap 'say "asked to stop"; stopping=1; end_child' TERM INT
trap 'replaced=1; say "another part of the training was replaced"; end_child' USR1

case "$role" in
nn-worker)
    must_read PERSIA_NN_WORKER_ENTRY "${PERSIA_NN_WORKER_ENTRY:-}"
    set -- "$PERSIA_NN_WORKER_ENTRY" --nproc-per-node "$NPROC_PER_NODE" --nnodes "$REPLICA_SIZE" \
        --node-rank "$REPLICA_INDEX"
    ;;
data-loader)
    must_read PERSIA_DATALOADER_ENTRY "${PERSIA_DATALOADER_ENTRY:-}"
    set -- "$PERSIA_DATALOADER_ENTRY" --replica-index "$REPLICA_INDEX" --replica-size "$REPLICA_SIZE"
    ;;
embedding-worker | embedding-parameter-server)
    must_read PERSIA_GLOBAL_CONFIG "${PERSIA_GLOBAL_CONFIG:-}"
    must_read PERSIA_EMBEDDING_CONFIG "${PERSIA_EMBEDDING_CONFIG:-}"
    set -- --global-config "$PERSIA_GLOBAL_CONFIG" --embedding-config "$PERSIA_EMBEDDING_CONFIG" \
        --replica-index "$REPLICA_INDEX" --replica-size "$REPLICA_SIZE"
    ;;
*) leave 78 "unknown role $role" ;;
esac

while :; do
    wait_for_peers
    [ -z "$stopping" ] || leave 143
    say "$role, replica $REPLICA_INDEX of $REPLICA_SIZE: persia-launcher $role $*"
    [ -z "${MUSTER_SUCCESS_FILE:-}" ] || rm -f "$MUSTER_SUCCESS_FILE"
    run persia-launcher "$role" "$@"
    [ -z "$stopping" ] || leave 143

    if [ "$role" = nn-worker ]; then
        done_lines=$(grep -c . "${MUSTER_SUCCESS_FILE:-/dev/null}" 2>/dev/null)
        # The training said that its results are saved: an abort while the interpreter shuts down changes nothing.
        if [ "${done_lines:-0}" -ge "$NPROC_PER_NODE" ]; then
            [ "$code" -eq 0 ] || say "status $code after the training saved its results: done"
            code=0
        fi
        if [ "$code" -eq 0 ]; then
            [ "${done_lines:-0}" -eq 0 ] || head -c 3000 "$MUSTER_SUCCESS_FILE" 2>/dev/null >/dev/termination-log
            exit 0
        fi
        [ -z "$replaced" ] || {
            # Let every other part see the change before a new trainer meets it.
            sleep $((2 * MUSTER_WATCH_INTERVAL))
            leave 75 "another part of the training was replaced: begin again from the last checkpoint"
        }
        # No message of our own: the last log lines say more.
        exit "$code"
    fi

    [ -n "$replaced" ] || [ "$role" != data-loader ] || [ "$code" -ne 0 ] || linger=1
    [ -z "${linger:-}" ] || {
        # All data are sent. Should the trainers begin again, they need it again: stay until they are gone for good.
        linger=
        say "all data sent, waiting for the trainers to end"
        gone=0
        while [ "$gone" -lt "${MUSTER_LINGER_SECONDS:-90}" ]; do
            sleep "$MUSTER_WATCH_INTERVAL" &
            wait $!
            # Its work is done, whoever says so.
            [ -z "$stopping" ] || exit 0
            if now=$(peers); then
                gone=0
                [ "$now" = "$known" ] || { replaced=1; break; }
            else
                gone=$((gone + MUSTER_WATCH_INTERVAL))
            fi
        done
        [ -n "$replaced" ] || exit 0
    }
    # Services and loaders begin again in place, keeping their address.
    [ -n "$replaced" ] || exit "$code"
done
"""
