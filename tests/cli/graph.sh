# graph: the model as text; the plan as a picture that is well-formed, complete and without overlaps
digits=$ROOT/examples/digits/digits.onnx
braid graph "$ROOT/tests/cases/mod-signs/model.onnx"
braid graph "$digits" --estimate
braid graph "$digits" -n 3
"$BRAID" graph "$digits" -o text.txt
"$BRAID" info --graph "$digits" | cmp - text.txt && echo the same as info --graph
cat >look.py <<'END'
import re
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
size = [float(root.get(k)) for k in ("width", "height")]
texts = ["".join(t.itertext()) for t in root.iter(SVG + "text")]
boxes, bars = [], []
for r in root.iter(SVG + "rect"):
    title = r.find(SVG + "title")
    if title is not None:
        x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
        boxes.append((x, y, x + w, y + h, title.text))
inside = all(0 <= b[0] and b[2] <= size[0] and 0 <= b[1] and b[3] <= size[1] for b in boxes)
apart = sum(a[0] < b[2] - .1 and b[0] < a[2] - .1 and a[1] < b[3] - .1 and b[1] < a[3] - .1
            for i, a in enumerate(boxes) for b in boxes[:i])
places = {(t.get("x"), t.get("y")) for t in root.iter(SVG + "text")}
print(len(boxes), "boxes,", "inside," if inside else "OUTSIDE,", apart, "overlaps,",
      "texts apart" if len(places) == len(texts) else "TEXTS MEET")
for t in texts[:int(sys.argv[2])]:
    print(" ", re.sub(r"[0-9][0-9.]* (s|ms|µs)\b", "T", re.sub(r"[0-9.]+ %", "P %", t)))
if len(sys.argv) > 3:
    print(re.sub(r"[0-9][0-9.]* (s|ms|µs)\b", "T", boxes[int(sys.argv[3])][4]))
END
look() { "$PYTHON" look.py "$@"; }
"$BRAID" graph "$digits" --plan >plan.svg
look plan.svg 2 0
"$BRAID" graph "$digits" --plan -n 3 -o plan.svg && look plan.svg 2
"$BRAID" graph "$digits" --plan --estimate -o plan.svg && look plan.svg 2
"$BRAID" graph "$digits" --plan --device host -o plan.svg && look plan.svg 12
# merged clones, a crowded wave, a wide and a long graph; names that XML does not allow as they are
cat >make.py <<'END'
import sys
import onnx
from onnx import helper

sys.path[:0] = [f"{sys.argv[1]}/bench", f"{sys.argv[1]}/bench/clones", f"{sys.argv[1]}/bench/branches"]
import importlib.util


def load(name):
    spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/bench/{name}/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


clones, branches = load("clones"), load("branches")
onnx.save(clones.clone(clones.base_model("mlp"), 5, weights="different")[0], "clones.onnx")
onnx.save(branches.make("heads", width=48), "heads.onnx")
onnx.save(branches.make("dag", nodes=1600), "dag.onnx")
x, y = (helper.make_tensor_value_info(n, 1, [4]) for n in "xy")
node = helper.make_node("Softmax", ["x"], ["y"], "a<b & \"c\"\x01\x7f é" + "long" * 20)
onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)],
                            ir_version=8), "names & <b>.onnx")
onnx.save(helper.make_model(helper.make_graph([], "g", [x], [x]), opset_imports=[helper.make_opsetid("", 17)],
                            ir_version=8), "nothing.onnx")
END
"$PYTHON" make.py "$ROOT"
"$BRAID" graph clones.onnx --plan --no-reroll -o plan.svg && look plan.svg 2 1
"$BRAID" graph heads.onnx --plan --estimate -o plan.svg && look plan.svg 0 | sed 's/^[1-9][0-9]* boxes/N boxes/'
"$BRAID" graph dag.onnx --plan --estimate -o plan.svg && look plan.svg 0 | sed 's/^[1-9][0-9][0-9]* boxes/N boxes/'
"$BRAID" graph "names & <b>.onnx" --plan -o plan.svg && look plan.svg 7 0
"$BRAID" graph nothing.onnx --plan -o plan.svg && look plan.svg 9
braid graph
braid graph no.onnx --plan
braid graph "$digits" --plan -o no/plan.svg
braid graph "$digits" -o no/graph.txt
braid graph "$digits" --plan -n 1,2
