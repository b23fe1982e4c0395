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
