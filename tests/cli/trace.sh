# profile --trace: Chrome's trace format on three tracks; dispatches lie inside their wave, phases follow each other
cat >make.py <<'END'
import onnx
from onnx import helper

x, y = (helper.make_tensor_value_info(n, 1, d) for n, d in (("x", [3, 3]), ("y", [])))
nodes = [helper.make_node(*n) for n in (("Exp", ["x"], ["a"], "first"), ("Softmax", ["x"], ["b"], "beside"),
                                        ("MatMul", ["a", "b"], ["c"], "join"), ("Det", ["c"], ["d"], "the host's"),
                                        ("Neg", ["d"], ["y"], "last"))]
onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)],
                            ir_version=8), "model.onnx")
END
cat >look.py <<'END'
import json, math, sys

def no_number(text): raise ValueError(text)  # NaN and Infinity are not JSON
def once(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)
root = json.loads(open(sys.argv[1], "rb").read().decode(), parse_constant=no_number, object_pairs_hook=once)
print(root["displayTimeUnit"], sorted(root))
events = root["traceEvents"]
for e in events:
    assert all(type(e[k]) is t for k, t in (("name", str), ("ph", str), ("pid", int), ("tid", int), ("args", dict))), e
    if e["ph"] == "M":
        print(json.dumps(e))
    else:
        assert e["ph"] == "X" and e["pid"] == 1 and type(e["cat"]) is str, e
        assert type(e["ts"]) is type(e["dur"]) is float and math.isfinite(e["ts"] + e["dur"]), e
        assert e["ts"] >= 0 and e["dur"] > 0, e
named = {e["tid"] for e in events if e["name"] == "thread_name"}
assert named == {1, 2, 3} >= {e["tid"] for e in events if e["ph"] == "X"}
steps = [e for e in events if e["ph"] == "X"]
for line in sorted(f"{e['tid']} {e['name']} {e['cat']} {e['args']}" for e in steps):  # of a wave in any order
    print(line)
waves = [e for e in steps if e["tid"] == 1]
end = lambda e: e["ts"] + e["dur"] + 1e-6
inside = [sum(w["ts"] <= d["ts"] and end(d) <= end(w) + 1e-6 for w in waves) for d in steps if d["tid"] == 2]
print("waves around each dispatch", inside)
for tid in 1, 2, 3:
    track = [e for e in steps if e["tid"] == tid]
    print("track", tid, "in order", all(end(a) <= b["ts"] + 2e-6 for a, b in zip(track, track[1:])))
host = [e for e in steps if e["tid"] == 3]
print("the host's part lies between", end(waves[-2]) <= host[0]["ts"] + 2e-6, end(host[-1]) <= waves[-1]["ts"] + 2e-6)
END
"$PYTHON" make.py
"$BRAID" profile model.onnx --no-fuse -q --trace trace.json >/dev/null
"$PYTHON" look.py trace.json
# a name that is not UTF-8, with control characters
"$PYTHON" -c 'd = open("model.onnx", "rb").read(); open("odd.onnx", "wb").write(d.replace(b"first", b"f\xffr\n\x1b"))'
"$BRAID" profile odd.onnx --no-fuse -q --trace odd.json | sed '/create ms/,$d' | grep Exp | sed 's/.* //'
"$PYTHON" look.py odd.json | grep Exp
braid profile model.onnx -q --trace no/trace.json | tail -2
