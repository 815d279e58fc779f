#!/usr/bin/env bash
# Runs the functions of upstream's test/cmd one by one against servers that are up, in a copy of upstream's tree (the working directory).
# Where they would stop at a failed command, this goes on: every place that fails is told, as "FILE:LINE", in one line a function.
# Environment: ETCD_PORT, SECURE_API_PORT, SECURE_CTLRMGR_PORT, PROGRAMS (a directory with kubectl), REPORTS (one file a function), ONLY (names; empty: all).
set -o errexit -o nounset -o pipefail

export TERM=xterm ALLOW_SKEW=1 KUBE_OUTPUT_SUBPATH=_none
export HOME=$REPORTS/home TMPDIR=$REPORTS/tmp
mkdir -p "$HOME" "$TMPDIR"
# This terminal's colours and the sources' own start-up messages are no results.
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

# Nothing is built here.
make() { :; }

# Whether the code under way wants to end at a failure; it never does.
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

# Places in upstream's own functions for assertions are left out: whoever called them fails too.
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
