#!/bin/sh
# The main job in three steps, each a process of its own: ask, ask what only the first answer explains, look.
set -eu
: "${BIN:?the folder that holds the cleveragents command}"
cd "$(dirname "$0")/.."

step() {
    printf '\n$ cleveragents %s\n' "$*"
    "$BIN/cleveragents" "$@" </dev/null
}

rm -rf "$CLEVERAGENTS_HOME"
step run examples/assistant.yaml "The meeting is on Friday at ten." --context demo
step run examples/assistant.yaml "On which day is the meeting?" --context demo
step context show demo
