# names that hold escape sequences and line ends: no control character reaches a terminal
"$PYTHON" - <<'END'
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

evil = "\x1b[31mx\ny\x7f\u009bz"
ins = [helper.make_tensor_value_info("i" + evil, T.FLOAT, ["N" + evil, 4])]
outs = [helper.make_tensor_value_info(name + evil, T.FLOAT, None) for name in ("o", "d")]
nodes = [helper.make_node("Softmax", ["i" + evil], ["o" + evil], name="n" + evil),
         helper.make_node("MatMul", ["i" + evil, "w"], ["m" + evil], name="mm" + evil),
         helper.make_node("Det", ["m" + evil], ["d" + evil], name="det" + evil)]
weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
graph = helper.make_graph(nodes, "g" + evil, ins, outs, [weight])
model = helper.make_model(graph, ir_version=8, domain="domain" + evil, producer_name="p" + evil, opset_imports=[
    helper.make_opsetid("", 17)])
onnx.save(model, "evil.onnx")
model.graph.node[2].op_type, model.graph.node[2].domain = "Odd" + evil, "dd" + evil
model.opset_import.append(helper.make_opsetid("dd" + evil, 1))
onnx.save(model, "odd.onnx")
open("dim.txt", "w").write(f"N{evil}=4")
END
cat >raw.py <<'END'
import re

text = open("out.txt", newline="").read()
if re.search("[\0-\x09\x0b-\x1f\x7f-\x9f]", text):
    print("raw:", ascii(text))
END
dim=$(cat dim.txt)
evil() { # what is printed, and whether some control character was
    echo "\$ braid $*"
    rc=0
    "$BRAID" "$@" --dim "$dim" >out.txt 2>&1 || rc=$?
    "$PYTHON" raw.py
    sed 's/rows [0-9]*$/rows N/; s/-*[0-9][0-9]*\.[0-9]*\(e-*[0-9]*\)*/T/g' out.txt
    [ $rc = 0 ] || echo "exit code $rc"
}
evil info evil.onnx
evil run evil.onnx --random
evil run evil.onnx --random -o out
evil run evil.onnx --random --compare --rtol 1
evil run evil.onnx
evil check odd.onnx
evil run odd.onnx --random
for command in profile 'profile --pipelines' 'bench --runs 1' 'run --random -vv'; do
    evil $command evil.onnx | grep '^raw' || true
done
# --compare where all there is depends on data
"$PYTHON" - <<'END'
import onnx
from onnx import TensorProto as T, helper

nodes = [helper.make_node("NonZero", ["x"], ["n"], name="late"), helper.make_node("Neg", ["n"], ["y"], name="neg")]
onnx.save(helper.make_model(helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [4])], [
    helper.make_tensor_value_info("y", T.INT64, None)]), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]),
    "late.onnx")
END
braid run late.onnx --input x=1,0,2,3 --compare
