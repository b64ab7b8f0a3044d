#!/usr/bin/env bash
# Installs, runs the main command and the tests in fresh environments of other Python and
# TensorFlow releases than the gate's own.
#
#   scripts/check_environments.sh                       # all of them
#   scripts/check_environments.sh "3.12" "3.11 2.16"    # "PYTHON [TENSORFLOW]" each
#   PYTEST_ARGS="-m 'not slow'" TRAIN_FLAGS=--max_number_of_steps=44 scripts/check_environments.sh
#
# Interpreters are looked up as python3.X on the PATH, then among those of pyenv.
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
    local python work
    python=$(interpreter "$1")
    work=$(mktemp -d)
    git clone --quiet "$source_dir" "$work/source"
    "$python" -m venv "$work/environment"
    (
        export PATH="$work/environment/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
        cd "$work/source"
        pip install --quiet '.[test]' ${2:+"tensorflow==$2.*" "tf-keras==$2.*"}
        python -c 'import platform; from importlib.metadata import version
print("Python", platform.python_version(), *(f"{name} {version(name)}" for name in ("tensorflow", "numpy")))'
        cd "$work"
        # shellcheck disable=SC2086 # several flags
        train_image_classifier --train_dir=digits_run ${TRAIN_FLAGS:-} 2>/dev/null | tail -n 1
        cd "$work/source" && eval "pytest --quiet ${PYTEST_ARGS:-}" | tail -n 5
    )
    rm -rf "$work"
}

if [ $# -eq 0 ]; then
    set -- "3.10" "3.12" "3.13" "3.11 2.16"
fi
for environment in "$@"; do
    echo "== $environment"
    # shellcheck disable=SC2086 # two words
    check $environment
done
