#!/bin/sh
# What a training machine without network needs, in folders of at most 42 MiB each, to be brought there one after the other.
#
#   model/runs/pack.sh EXAMPLES FOLDER      then model/runs/away.sh on the machine
#
# FOLDER/first holds the rows of tokens, the prompts by hand and the Python packages that are not there; FOLDER/part-aa, -ab, ... the base model
# with the vocabulary of ASCII text (170 MB, so four parts). FIRST=100000 keeps ASCII tokens among the first 100,000 only (117 MB).
# SHOWN=0.5 lets half of the requests for formulas show an example of the same structure, as retrieval would.
# PACKAGES are installed there without what they need: torch, transformers, peft, accelerate, click, rich, numpy are there.
set -eu
cd "$(dirname "$0")/../.."
EXAMPLES=$1 OUT=$2
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
PACKAGES=${PACKAGES-gguf==0.19.0 tree-sitter tree-sitter-cuda platformdirs}
mkdir -p "$OUT/first/wheels"
# shellcheck disable=SC2086  # one word for each package
[ -z "$PACKAGES" ] || "$PYTHON" -m pip download -q --no-deps --only-binary=:all: --python-version "${PYTHON_THERE:-3.12}" \
    --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    -d "$OUT/first/wheels" $PACKAGES
"$PYTHON" -m warpwright_upskill.prune --first "${FIRST:-0}" --out "$OUT/base.gguf" ${MODEL:+--model "$MODEL"}
"$PYTHON" -m warpwright_upskill.rows "$EXAMPLES" --model "$OUT/base.gguf" --out "$OUT/first/examples.rows" --shown "${SHOWN:-0}"
"$PYTHON" -m warpwright_upskill.answers prepare --limit "${ASKED:-0}" --model "$OUT/base.gguf" --out "$OUT/first/prompts.json"
rm -rf "$OUT"/part-*
split -b 42m "$OUT/base.gguf" "$OUT/part-"
for part in "$OUT"/part-*; do mv "$part" "$part.gguf"; mkdir "$part"; mv "$part.gguf" "$part/base"; done
sha256sum "$OUT/base.gguf" | cut -d' ' -f1 > "$OUT/first/base.sha256"
rm "$OUT/base.gguf"
du -sh "$OUT"/*
