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
          all(f[name] > 0 for name in ("wall_p50_ms", "wall_p99_ms", "items_per_s")),
          all((f[f"{name}_p50_ms"] is None) == (f["device_p50_ms"] is None) for name in ("upload", "compute", "download")),
          (f["compute_p50_ms"] or 0) <= (f["device_p50_ms"] or 0))
END2
# what the first run of each number cost: every pipeline is made in one row
cat >made.py <<'END4'
import json
import sys

for f in json.load(open(sys.argv[1])):
    made = f["pipelines"]
    some = made["made"] > 0
    print(f["lanes"], f["first_run_ms"] > 0, some or f["lanes"] > 1, 0 <= made["cached"] <= made["made"],
          some == (made["slowest"] != "") == (made["slowest_ms"] > 0), made["ms"] > 0 or not some)
END4
"$BRAID" bench "$model" -n 1,2 --runs 3 --json -q >made.json
"$PYTHON" made.py made.json
for lanes in 1,2,9 4; do
    "$BRAID" bench "$model" -n $lanes --runs 3 --json -q >lanes.json
    "$PYTHON" lanes.py lanes.json
done
# warming up: until times are steady, half of --seconds at least; not with --runs or --warmup 0
cat >warm.py <<'END5'
import json
import sys

seconds, look = float(sys.argv[1]), sys.argv[2] == "look"
f = json.load(open("warm.json"))
known, ms = f["steady"] in (True, False), f["warmup_ms"]
# steady times take three windows of 50 ms; the limit is 2 s or --seconds
least = max(500 * seconds, 150) if f["steady"] else 1990
print("steady is " + ("looked for" if known or ms >= least else "unknown"), ms >= least if look else True)
END5
for options in '--seconds 0.1' '--seconds 0.4' '--seconds 0.1 --warmup 0' '--seconds 0.1 --warmup 5 --runs 3'; do
    "$BRAID" bench "$model" $options --json -q >warm.json
    look=$(case $options in *warmup*) echo no ;; *) echo look ;; esac)
    echo "$options: $("$PYTHON" warm.py $(echo $options | cut -d' ' -f2) $look)"
done
figures() { sed "s|$ROOT/||g; s/[0-9][0-9]*\.[0-9][0-9]*/T/g; s/  */ /g"; }
"$BRAID" bench "$model" -n 1,3 --runs 3 -q | tail -n +2 | figures
"$BRAID" bench "$model" -n 2,3 --runs 3 -q --device host | tail -n +2 | figures
"$BRAID" bench "$model" -n 3 --runs 3 -q --device host | figures
"$BRAID" bench "$model" -n 3 --runs 3 -q | figures | sed 's/ on .*:/:/; s/^[0-9]* pipelines .* T ms: [a-z]*_.*/pipelines/'
for lanes in 1,2,...,16 1,3,...,20 2,4,...,5,6; do
    echo $lanes: $("$BRAID" bench "$model" -n $lanes --runs 1 -q --device host | awk '$1 + 0 > 0 { print $1 }')
done
for wrong in 0 1,,2 x 1000001 -1 '' 1,...,8 2,3,...,9 ...,4 1,2,... 1,2,...,2 2,1,...,4; do
    braid bench "$model" -n "$wrong" --device host
done
# the same work as a batch: dims 0 = 1 or none, fixed or free; only numbers that fit the file
m=$ROOT/tests/cli/models
cat >against.py <<'END3'
import json
import sys

for f in json.load(open(sys.argv[1])):
    batch = f["against"]
    print(f["lanes"], batch and [batch["runs"], batch["difference"], batch["wall_p50_ms"] > 0, batch["batch_over_lanes"] > 0,
                                 batch["model"].rsplit("/")[-1]])
END3
for pair in row1:rowN row:rowN row:row4 row1:row4; do
    echo $pair
    "$BRAID" bench "$m/${pair%:*}.onnx" -n 1,4 --runs 2 -q --json --against "$m/${pair#*:}.onnx" >against.json
    "$PYTHON" against.py against.json
done
"$BRAID" bench "$m/row1.onnx" -n 1,4 --runs 2 -q --against "$m/row4.onnx" --device host | tail -n +2 | figures
"$BRAID" bench "$m/rowN.onnx" --dim N=1 -n 4 --runs 2 -q --against "$m/rowN.onnx" --device host | figures
braid bench "$m/row1.onnx" -n 1,2 --runs 2 --device host --against "$m/row4.onnx"
braid bench "$m/row1.onnx" -n 4 --device host --against "$m/nchw.onnx"
braid bench "$m/row1.onnx" -n 4 --device host --against "$m/names.onnx"
braid bench "$m/row1.onnx" -n 4 --device host --against missing.onnx
braid bench "$m/text.onnx" -n 2 --device host --input s=a,b
"$BRAID" bench "$m/row1.onnx" -n 1,4 --seconds 0.01 --json -q --against "$m/rowN.onnx" | grep -c '"warmup_ms"\|"steady": [tf]'
