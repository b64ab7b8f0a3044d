#!/usr/bin/env bash
# Installs, runs the main command and the tests in fresh environments of other Python and
# TensorFlow releases than the gate's own, and prints a row of the table of docs/versions.md for each.
#
#   scripts/check_environments.sh                       # the oldest and the newest of both
#   scripts/check_environments.sh "3.12" "3.11 2.16"    # "PYTHON [TENSORFLOW]" each
#   PYTEST_ARGS="--slow=none" TRAIN_FLAGS=--max_number_of_steps=44 scripts/check_environments.sh
#
# Interpreters are looked up as python3.X on the PATH, then among those of pyenv.  The tests take
# hours; with --slow=none some ten minutes for each environment.  Where tests fail, the file is named
# that has what pytest printed.
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
unset PYTHONPATH

interpreter() {
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" --version >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "no python$1 on the PATH or in pyenv" >&2
    return 1
}

check() {
    local python work log
    python=$(interpreter "$1")
    work=$(mktemp -d)
    log=$(mktemp --suffix=.txt)
    git clone --quiet "$source_dir" "$work/source"
    "$python" -m venv "$work/environment"
    (
        export PATH="$work/environment/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
        cd "$work/source"
        pip install --quiet '.[test]' ${2:+"tensorflow==$2.*" "tf-keras==$2.*"}
        cd "$work"
        # shellcheck disable=SC2086 # several flags
        train_image_classifier --train_dir=digits_run ${TRAIN_FLAGS:-} 2>/dev/null | tail -n 1
        cd "$work/source"
        eval "pytest --quiet ${PYTEST_ARGS:-}" >"$log" || echo "failed: see $log" | tee "$work/failed"
        python - "$(date +%F)" "${PYTEST_ARGS:-all}" "$(tail -n 1 "$log")" <<'END'
import platform
import re
import sys
from importlib.metadata import version

day, tests, summary = sys.argv[1:]
counts = {kind: number for number, kind in re.findall(r"(\d+) (passed|skipped|failed|error)", summary)}
versions = [platform.python_version(), *map(version, ("tensorflow", "keras", "numpy"))]
numbers = [counts.get(kind, "0") for kind in ("passed", "skipped", "failed")]
print("|", " | ".join([day, *versions, f"`{tests}`", *numbers]), "|")
END
    )
    [ -e "$work/failed" ] || rm "$log"
    rm -rf "$work"
}

if [ $# -eq 0 ]; then
    set -- "3.10 2.16" "3.13"
fi
for environment in "$@"; do
    echo "== $environment"
    # shellcheck disable=SC2086 # two words
    check $environment
done
