#!/bin/sh
# The whole path from kernels to an installed adapter on a tiny random Gemma 3: about a minute on two cores.
# It proves the path and teaches nothing. Needs nvcc and `pip install 'warpwright[upskill]'`.
#
#   model/runs/tiny.sh [FOLDER]        default: .build/upskill-tiny
set -eu
cd "$(dirname "$0")/../.."
OUT=${1:-.build/upskill-tiny}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
mkdir -p "$OUT"
run() { stage=$1; shift; echo "== $stage" >&2; "$PYTHON" -m "warpwright_upskill.$stage" "$@"; }

run tiny "$OUT/tiny.gguf"
run collect --formulas 10 --spelled 5 --wordings 2 --broken 5 --predict 0 --renamed 0 \
    --written tests/upskill/fixtures/requests --out "$OUT/examples.jsonl"
run train "$OUT/examples.jsonl" --model "$OUT/tiny.gguf" --out "$OUT/adapter" \
    --set rank=8 --set alpha=16 --set learning_rate=0.01 --set max_steps=20 --set max_tokens=4096 --set batch=4
run export "$OUT/adapter" --model "$OUT/tiny.gguf" --out "$OUT/adapter.gguf" --check "$OUT/examples.jsonl" --check-count 2
run evaluate --examples "$OUT/examples.jsonl" --model "$OUT/tiny.gguf" --adapter "$OUT/adapter.gguf" --tries 2 --limit 3 --out "$OUT/evaluation.json"
# Into a data folder of its own, so that the user's own adapter stays.
WARPWRIGHT_DATA_DIR="$OUT/data" run install "$OUT/adapter.gguf"
