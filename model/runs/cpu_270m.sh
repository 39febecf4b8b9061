#!/bin/sh
# A small LoRA on the real Gemma 3 270M, on a CPU, with few examples. Needs nvcc and `pip install 'warpwright[upskill]'`.
#
#   model/runs/cpu_270m.sh [FOLDER]    default: .build/upskill
#   python -m warpwright_upskill.install FOLDER/adapter.gguf    makes the server use it
set -eu
cd "$(dirname "$0")/../.."
OUT=${1:-.build/upskill}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
mkdir -p "$OUT"
run() { stage=$1; shift; echo "== $stage" >&2; "$PYTHON" -m "warpwright_upskill.$stage" "$@"; }

run collect --formulas 200 --spelled 200 --copies 0 --broken 20 --predict 0 --renamed 2 --out "$OUT/examples.jsonl"
run train "$OUT/examples.jsonl" --out "$OUT/adapter" --set rank=16 --set alpha=32 --set max_steps=100 --set batch=4
run export "$OUT/adapter" --out "$OUT/adapter.gguf" --check "$OUT/examples.jsonl"
run evaluate --examples "$OUT/examples.jsonl" --adapter "$OUT/adapter.gguf" --limit 24 --out "$OUT/evaluation.json"
