#!/bin/sh
# Holds a lock for several steps: acquires it, extends it between the steps, and releases it however
# the script ends. For a single command, `tenure run` is shorter and renews by itself.
#
#   TENURE_SERVERS=redis://127.0.0.1:6379 sh docs/examples/nightly.sh
#
# Nothing renews the lock during a step: choose a TTL well above the longest step, in seconds.
set -eu

key=${NIGHTLY_KEY:-nightly-report}
ttl=60

# Exits with 75 if another holds the lock, with 69 if the state is unknown. Nothing was done then.
TENURE_TOKEN=$(tenure acquire --no-wait --ttl "$ttl" "$key")
export TENURE_TOKEN

# Releases the lock only if this script still holds it.
trap 'tenure release "$key" || true' EXIT
# A signal ends the script, which then runs the trap above.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

step() {
    # Fails, and ends the script, if the lock is lost.
    tenure extend --ttl "$ttl" "$key"
    echo "$1"
}

step "collect the figures"
step "write the report"
step "report done"
