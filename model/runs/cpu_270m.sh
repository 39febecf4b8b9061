#!/bin/sh
# A small LoRA on the real Gemma 3 270M, on a CPU: the settings of the entries in model/LOG.md.
# About 10 minutes on two cores with nothing beside it. Needs nvcc and `pip install 'warpwright[upskill]'`.
#
#   model/runs/cpu_270m.sh [FOLDER]    default: .build/upskill
#   python -m warpwright_upskill.install FOLDER/adapter.gguf    makes the server use it
set -eu
cd "$(dirname "$0")/../.."
OUT=${1:-.build/upskill}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
mkdir -p "$OUT"
run() { stage=$1; shift; echo "== $stage" >&2; "$PYTHON" -m "warpwright_upskill.$stage" "$@"; }

run collect --samples csrc_samples --variants 4 --out "$OUT/examples.jsonl"
run train "$OUT/examples.jsonl" --out "$OUT/adapter" --set rank=16 --set alpha=32 --set epochs=3 --set batch=4 \
    --set mix="{plan = 0.6, kernel = 0.4}"
run export "$OUT/adapter" --out "$OUT/adapter.gguf" --check "$OUT/examples.jsonl"
run evaluate --examples "$OUT/examples.jsonl" --adapter "$OUT/adapter.gguf" --limit 24 --out "$OUT/evaluation.json"
