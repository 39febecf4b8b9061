#!/bin/sh
# Train on collected examples by a recipe of this folder, teach by the model's own answers, and write what llama.cpp loads.
#
#   model/runs/recipe.sh 270m|1b|4b_qlora EXAMPLES FOLDER [--set NAME=VALUE ...]
#
# EXAMPLES are JSON lines of `collect`, or the tokens that `rows` made of them. MODEL names the base (a GGUF file); without
# it, it is the server's. GPUS is how many to train on, ROUNDS how often to retrain, TYPE the adapter's number type.
# A run that was interrupted goes on when it is started again.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-$([ -x "$HERE/../../.venv/bin/python" ] && echo "$HERE/../../.venv/bin/python" || echo python3)}
RECIPE=$1 EXAMPLES=$2 OUT=$3
shift 3
mkdir -p "$OUT"
run() { stage=$1; shift; echo "== $stage" >&2; "$PYTHON" -m "warpwright_upskill.$stage" ${MODEL:+--model "$MODEL"} "$@"; }
train() {
    if [ "${GPUS:-1}" -eq 1 ]; then run train "$@"; return; fi
    echo "== train on $GPUS GPUs" >&2
    "$PYTHON" -m torch.distributed.run --standalone --nproc_per_node "$GPUS" -m warpwright_upskill.train ${MODEL:+--model "$MODEL"} "$@"
}

ADAPTER=$OUT/adapter
[ -e "$ADAPTER/training.json" ] || train "$EXAMPLES" --out "$ADAPTER" --config "$HERE/$RECIPE.toml" "$@"
if [ "${ROUNDS:-0}" -gt 0 ]; then
    run retrain "$EXAMPLES" --adapter "$ADAPTER" --out "$OUT/rounds" --rounds "$ROUNDS" --config "$HERE/$RECIPE.toml" \
        --workers "${WORKERS:-1}" --prompts "${PROMPTS:-4000}" "$@"
    for round in $(seq 1 "$ROUNDS"); do
        if [ -e "$OUT/rounds/round$round/adapter/training.json" ]; then ADAPTER=$OUT/rounds/round$round/adapter; fi
    done
fi
run export "$ADAPTER" --out "$OUT/adapter.gguf" --type "${TYPE:-f16}"
