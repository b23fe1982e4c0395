# bench: a run far below 1 ms still has times and a rate
model=$ROOT/tests/cases/mod-signs/model.onnx
cat >figures.py <<'END'
import json
import sys

figures = json.load(open(sys.argv[1]))
for name in "wall_min_ms", "wall_p50_ms", "wall_p90_ms", "wall_p99_ms", "items_per_s":
    print(name, "above 0" if figures[name] > 0 else figures[name])
ordered = [figures["wall_" + name] for name in ("min_ms", "p50_ms", "p90_ms", "p99_ms")]
print("in order" if ordered == sorted(ordered) else ordered)
device = figures["device_p50_ms"] # null without timestamps
print("device_p50_ms", "fine" if device is None or 0 < device <= figures["wall_p99_ms"] else device)
print("runs", figures["runs"], "lanes", figures["lanes"])
END
for device in host ''; do
    "$BRAID" bench "$model" ${device:+--device $device} --runs 20 --json -q >figures.json
    "$PYTHON" figures.py figures.json
done
# several lanes: a table, an array of objects or one object
cat >lanes.py <<'END2'
import json
import sys

figures = json.load(open(sys.argv[1]))
for f in figures if isinstance(figures, list) else [figures]:
    print(type(figures).__name__, f["lanes"], f["runs"], f.get("time_over_one_lane", "no ratio") != 0,
          all(f[name] > 0 for name in ("wall_p50_ms", "wall_p99_ms", "items_per_s")), "device_p50_ms" in f)
END2
for lanes in 1,2,9 4; do
    "$BRAID" bench "$model" -n $lanes --runs 3 --json -q >lanes.json
    "$PYTHON" lanes.py lanes.json
done
"$BRAID" bench "$model" -n 1,3 --runs 3 -q | tail -n +2 | sed 's/[0-9][0-9]*\.[0-9]*/T/g; s/  */ /g'
"$BRAID" bench "$model" -n 2,3 --runs 3 -q --device host | tail -n +2 | sed 's/[0-9][0-9]*\.[0-9]*/T/g; s/  */ /g'
"$BRAID" bench "$model" -n 3 --runs 3 -q --device host | head -1 | sed 's/.*: //'
for wrong in 0 1,,2 x 1000001 -1 ''; do braid bench "$model" -n "$wrong" --device host; done
