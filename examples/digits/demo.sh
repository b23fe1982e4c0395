#!/bin/sh
# demo.sh BRAID: classifies the images of this folder and counts how many are right.
set -eu
braid=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"

echo "== braid devices"
"$braid" devices
echo "== braid run digits.onnx --input 'image=images/*.png' --labels labels.txt --probabilities --top 2"
"$braid" run digits.onnx --input 'image=images/*.png' --labels labels.txt --probabilities --top 2 |
    awk '/^lane / { want = $0; sub(/.*-/, "", want); sub(/\.png.*/, "", want); file = $NF; sub(/.*=/, "", file); runs++; best = 1; next }
         /^logits/ { next }
         { if (best) { guess = $1; right += guess == want; line = sprintf("%-24s %-6s %6.2f %%", file, $2, 100 * $3) }
           else if (runs <= 10 || guess != want)
               printf "%s   then %-6s %6.2f %%%s\n", line, $2, 100 * $3, guess == want ? "" : "   <- wrong"
           best = 0 }
         END { if (runs > 10) printf "...\n"
               printf "%d of %d images right\n", right, runs
               exit runs == 0 }'
printf 'measured when the model was made: '
cat accuracy.txt
echo "== braid bench digits.onnx -n 1,8,64 --seconds 1"
"$braid" bench digits.onnx -n 1,8,64 --seconds 1
