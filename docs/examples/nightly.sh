#!/bin/sh
# A script that holds a lock for several steps: it acquires, extends between the steps, and releases
# however it ends. Where one command is all the work, `tenure run` is shorter and renews by itself.
#
#   TENURE_SERVERS=redis://127.0.0.1:6379 sh docs/examples/nightly.sh
#
# Without renewal the TTL is the longest that a step may take: choose it well above that.
set -eu

key=${NIGHTLY_KEY:-nightly-report}
ttl=60

# Busy is 75 and "no server could answer" is 69: either way nothing is done, and whoever runs this
# sees which.
TENURE_TOKEN=$(tenure acquire --no-wait --ttl "$ttl" "$key")
export TENURE_TOKEN

# Releases only what is still ours; once it has ended there is nothing to release.
trap 'tenure release "$key" || true' EXIT
# A signal ends the script, and with it comes the trap above.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

step() {
    # Fails, and ends the script, when the lock is not ours any more.
    tenure extend --ttl "$ttl" "$key"
    echo "$1"
}

step "collect the figures"
step "write the report"
step "report done"
