# bench --ablate: four schedules of one model, the same bits
cat >make.py <<'END'
import sys
import onnx

sys.path[:0] = [f"{sys.argv[1]}/bench/clones"]
from make import base_model, clone

onnx.save(clone(base_model("mlp"), 3, weights="different", shuffle=True)[0], "clones.onnx")
END
"$PYTHON" make.py "$ROOT"
cat >look.py <<'END'
import json

rows = json.load(open("out.json"))
print(*sorted(rows[0]))
for r in rows:
    print(r["schedule"], r["lanes"], r["runs"], r["steps"], r["dispatches"], r["waves"],
          r["wall_p50_ms"] > 0 and r["device_p50_ms"] > 0 and r["plan_ms"] > 0 and r["serial_over_it"] > 0)
END
# the last row depends on what the re-roll pass makes of it
for n in 1 2; do
    "$BRAID" bench clones.onnx --ablate -n $n --runs 2 --json -q >out.json
    "$PYTHON" look.py | sed 's/^\(re-rolled [0-9]* [0-9]*\) [0-9]* [0-9]* [0-9]*/\1 S D W/'
done
"$BRAID" bench clones.onnx --ablate --runs 2 -q | sed 's/ on .*, / on DEVICE, /; s/[0-9][0-9]*\.[0-9]*/T/g; s/  */ /g; /^re-rolled T/s/ [0-9].*/ .../'
"$BRAID" bench clones.onnx --ablate --runs 1 --warmup 0 -q --device host | sed -n '2,3s/  */ /gp' | sed 's/[0-9][0-9]*\.[0-9]*/T/g'
braid bench clones.onnx --ablate -n 1,2
braid bench clones.onnx --ablate --against clones.onnx
braid bench clones.onnx --ablate --no-reroll
