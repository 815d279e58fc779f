#!/usr/bin/env bash
# Runs the functions of upstream's test/cmd one by one against running servers, in a copy of upstream's tree (the working directory).
# Unlike the original, it continues after a failed command and prints every failing place as "FILE:LINE", one line per function.
# Environment: ETCD_PORT, SECURE_API_PORT, SECURE_CTLRMGR_PORT, PROGRAMS (directory with kubectl), REPORTS (directory for one file per function), ONLY (names; empty: all).
set -o errexit -o nounset -o pipefail

export TERM=xterm ALLOW_SKEW=1 KUBE_OUTPUT_SUBPATH=_none
export HOME=$REPORTS/home TMPDIR=$REPORTS/tmp
mkdir -p "$HOME" "$TMPDIR"
# Terminal colours and start-up messages of the sources must not appear in the results.
exec 3>&1 >"$REPORTS/driver.log" 2>&1

source hack/lib/init.sh
source hack/lib/test.sh
KUBE_OUTPUT_HOSTBIN=$PROGRAMS
source test/cmd/legacy-script.sh
KUBE_TEMP=$TMPDIR
CONTEXT=test
SUPPORTED_RESOURCES=("*")
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$SECURE_API_PORT"
kubectl config set-context "$CONTEXT" --user test-admin --cluster local
kubectl config use-context "$CONTEXT"

# Skip building.
make() { :; }

# Whether the running code has set errexit. The option itself is never set, so the code does not end at a failure.
strict=1
set() {
  local kept=() each
  while [[ $# -gt 0 ]]; do
    each=$1
    shift
    case "$each${1:+ $1}" in
      "-o errexit"*) strict=1; shift ;;
      "+o errexit"*) strict=0; shift ;;
      "-o "* | "+o "*) kept+=("$each" "$1"); shift ;;
      -e*) strict=1 ;;
      +e*) strict=0 ;;
      *) kept+=("$each") ;;
    esac
  done
  if [[ ${#kept[@]} -gt 0 ]]; then builtin set "${kept[@]}"; fi
}

failed_at() { if [[ $strict == 1 ]]; then echo "@failed ${BASH_SOURCE[1]##*/}:$1"; fi; }

# Failures inside upstream's assertion functions are omitted, because the caller fails too.
places_in() { grep -o '^@failed .*' "$1" | cut -d' ' -f2 | grep -v '^test\.sh:' | sort -u | tr '\n' ' ' || true; }

recorded() {
  local name=$1 began=$SECONDS status=0
  builtin set +o nounset +o errexit
  (builtin set -o errtrace; trap 'failed_at $LINENO' ERR; "$@") >"$REPORTS/$name.log" 2>&1 </dev/null
  status=$?
  builtin set -o nounset
  echo "$name $status $((SECONDS - began)) $(places_in "$REPORTS/$name.log")" >&3
}

record_command() {
  if [[ -z $ONLY || " $ONLY " == *" $1 "* ]]; then recorded "$@"; fi
}

builtin set +o errexit
trap stop-proxy EXIT
if [[ -z $ONLY || " $ONLY " == *" runTests "* ]]; then
  recorded runTests
else
  runTests
fi
