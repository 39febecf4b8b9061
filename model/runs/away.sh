#!/bin/sh
# On a training machine without network, from the repository's folder; each call ends within its ten minutes.
#
#   away.sh keep FOLDER     keep a folder of pack.sh here: first, then part-aa, part-ab, ...
#   away.sh ablations       train on 2,000, 8,000 and 32,000 examples of formulas
#   away.sh texts FOLDER    train on formulas, on kernels' texts, on both, and on formulas after texts; FOLDER is of `texts make`
#   away.sh big             the 270m recipe with two rounds of retraining; call it again until it says that it is done
#   away.sh taught          train the weights themselves (270m_whole), as codes of 2 and 3 bits, with the answers of each; call it again, too
#   away.sh again           an epoch from what ships, on rows of another seed's names and steps, and its mean with what ships
#   away.sh rounds          two rounds of retraining on what `taught` trained
#   away.sh full            100 steps of the 4b_qlora recipe on a random Gemma 3 of full size: memory, tokens a second
#
# What is kept lies in KEPT and stays there from call to call; results go to OUT, files of at most 16 MiB.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
KEPT=${KEPT:-/tmp/warpwright-upskill}
OUT=${OUT:-$KEPT/out}
SIZE=${SIZE:-4b}
PYTHON=${PYTHON:-python3}
export PYTHON MODEL="$KEPT/base.gguf" PYTHONUNBUFFERED=1
export PYTHONPATH="$HERE/../../server:$HERE/..:$KEPT/site${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$KEPT" "$OUT"
WHAT=$1
shift

keep() {
    case $(basename "$1") in
    first)
        cp "$1"/examples.rows "$1"/prompts.json "$1"/base.sha256 "$KEPT"
        for wheel in "$1"/wheels/*.whl; do
            if [ -e "$wheel" ]; then "$PYTHON" -m pip install -q --no-index --no-deps --target "$KEPT/site" --upgrade "$wheel"; fi
        done ;;
    part-*) cp "$1/base" "$KEPT/$(basename "$1")" ;;
    *) echo "away.sh: $1 is no folder of pack.sh" >&2; exit 2 ;;
    esac
    ls -l "$KEPT"
}

whole() {
    if ! echo "$(cat "$KEPT/base.sha256")  $MODEL" | sha256sum -c --status 2>/dev/null; then
        cat "$KEPT"/part-* > "$MODEL" 2>/dev/null || true
        if ! echo "$(cat "$KEPT/base.sha256")  $MODEL" | sha256sum -c --status; then
            echo "away.sh: the parts in $KEPT are not all there, or one is damaged" >&2
            exit 2
        fi
    fi
}

# What the adapter in a folder answers to the prompts by hand, NAME.json; TRIES says how often, else the second word does.
ask() {
    "$PYTHON" -m warpwright_upskill.answers ask "$KEPT/prompts.json" --model "$MODEL" --adapter "$1" --tries "${TRIES:-$2}" --out "$OUT/$3.json"
}

# One short run and its answers to the prompts by hand, NAME.json. What does not fit in the time is gone on with by the next call.
one() {
    name=$1
    shift
    if [ ! -e "$KEPT/$name/training.json" ]; then
        "$PYTHON" -m warpwright_upskill.train "$KEPT/examples.rows" --model "$MODEL" --out "$KEPT/$name" --config "$HERE/270m.toml" "$@"
    fi
    ask "$KEPT/$name" 8 "$name"
    cat "$KEPT/$name/training.json" >> "$OUT/ablations.json"
}

# What is asked of trained weights as they are, and as codes of 2 and 3 bits, which OUT/NAME-BITS holds.
coded() {
    ask "$1" 16 "$2"
    for bits in 2 3; do
        "$PYTHON" -m warpwright_upskill.ship encode "$1" --bits "$bits" --out "$KEPT/$2-$bits"
        "$PYTHON" -m warpwright_upskill.ship decode "$KEPT/$2-$bits" --model "$MODEL" --out "$KEPT/$2-$bits-decoded"
        ask "$KEPT/$2-$bits-decoded" 16 "$2-$bits"
    done
}

case $WHAT in
keep) keep "$1" ;;
ablations)
    whole
    rm -f "$OUT/ablations.json"
    for count in ${COUNTS:-2000 8000 32000}; do one "formula-$count" --set "mix={formula=1}" --set "examples=$count" "$@"; done ;;
texts)
    whole
    FROM=$1
    shift
    for run in "formula|formula=1|0|formula" "kernel|kernel=1|0|kernel" "both|formula=0.5, kernel=0.5|0|formula kernel" "pretrained|formula=1|1|formula"; do
        IFS='|' read -r name mix epochs asked <<EOF
$run
EOF
        [ -e "$KEPT/texts-$name/training.json" ] || "$PYTHON" -m warpwright_upskill.train "$FROM/examples.rows" --model "$MODEL" \
            --out "$KEPT/texts-$name" --config "$HERE/270m_whole.toml" --set "mix={$mix}" --set "pretrain_epochs=$epochs" --set epochs=3 "$@"
        cp "$KEPT/texts-$name/training.json" "$OUT/texts-$name-training.json"
        for task in $asked; do
            "$PYTHON" -m warpwright_upskill.answers ask "$FROM/$task.json" --model "$MODEL" --adapter "$KEPT/texts-$name" --tries "${TRIES:-4}" \
                --most "${MOST:-600}" --out "$OUT/texts-$name-$task.json"
        done
    done
    echo "done" ;;
big)
    whole
    ROUNDS=${ROUNDS:-2} WORKERS=${WORKERS:-$(nproc)} "$HERE/recipe.sh" 270m "$KEPT/examples.rows" "$KEPT/big" "$@"
    cp "$KEPT"/big/adapter.gguf* "$OUT"
    ask "$KEPT/big/adapter" 8 first
    cp "$KEPT/big/adapter/training.json" "$OUT/first-training.json"
    cat "$KEPT"/big/rounds/round*/round.json > "$OUT/rounds.json"
    echo "done" ;;
taught)
    whole
    if [ ! -e "$KEPT/taught/training.json" ]; then
        "$PYTHON" -m warpwright_upskill.train "$KEPT/examples.rows" --model "$MODEL" --out "$KEPT/taught" --config "$HERE/270m_whole.toml" "$@"
    fi
    cp "$KEPT/taught/training.json" "$OUT/taught-training.json"
    coded "$KEPT/taught" taught
    echo "done" ;;
again)
    whole
    "$PYTHON" -m warpwright_upskill.ship decode "$HERE/../../server/warpwright/assist/taught/data" --model "$MODEL" --out "$KEPT/shipped"
    "$PYTHON" -m warpwright_upskill.train "$KEPT/examples.rows" --model "$MODEL" --adapter "$KEPT/shipped" --out "$KEPT/again" \
        --config "$HERE/270m_whole.toml" --set learning_rate=1e-4 "$@"
    "$PYTHON" -m warpwright_upskill.ship blend "$KEPT/shipped" "$KEPT/again" --share 0.75 --out "$KEPT/blended"
    cp "$KEPT/again/training.json" "$OUT/again-training.json"
    coded "$KEPT/blended" again
    echo "done" ;;
rounds)
    whole
    "$PYTHON" -m warpwright_upskill.retrain "$KEPT/examples.rows" --model "$MODEL" --adapter "$KEPT/taught" --out "$KEPT/rounds" --rounds "${ROUNDS:-2}" \
        --prompts "${PROMPTS:-8000}" --workers "${WORKERS:-$(nproc)}" --config "$HERE/270m_whole.toml" "$@"
    cat "$KEPT"/rounds/round*/round.json > "$OUT/rounds.json"
    coded "$KEPT/rounds/round${ROUNDS:-2}/adapter" rounds
    echo "done" ;;
full)
    whole
    [ -e "$KEPT/$SIZE.gguf" ] || "$PYTHON" -m warpwright_upskill.tiny "$KEPT/$SIZE.gguf" --size "$SIZE" --vocabulary "$MODEL"
    "$PYTHON" -m warpwright_upskill.train "$KEPT/examples.rows" --model "$KEPT/$SIZE.gguf" --out "$KEPT/full" \
        --config "$HERE/4b_qlora.toml" --set max_steps=100 "$@" --set judge_every=0
    "$PYTHON" -m warpwright_upskill.export "$KEPT/full" --model "$KEPT/$SIZE.gguf" --type q8_0 --out "$KEPT/full.gguf"
    cp "$KEPT/full/training.json" "$OUT/full.json"
    cp "$KEPT/full.gguf.json" "$OUT" ;;
*) echo "away.sh: keep FOLDER, ablations, big, taught, again, rounds or full" >&2; exit 2 ;;
esac
