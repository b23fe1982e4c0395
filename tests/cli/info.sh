# info: what is said of lanes: nothing without -n, how each step goes about them with it
digits=$ROOT/examples/digits/digits.onnx
"$BRAID" info "$digits" | grep -E 'lane|round|phase|device|wave'
"$BRAID" info "$digits" -n 64 | grep -E 'lane|round'
digits_info() { "$BRAID" info "$digits" "$@" 2>&1 >/dev/null || echo "exit code $?"; }
digits_info --shared image
digits_info --shared other -n 2
# a long Sum becomes several nodes, and all of them are called as it is
"$PYTHON" - <<'END'
import onnx
from onnx import TensorProto as T, helper
ins = [helper.make_tensor_value_info(f"x{i}", T.FLOAT, [i % 3 + 1]) for i in range(8)]
outs = [helper.make_tensor_value_info("y", T.FLOAT, None)]
total = helper.make_node("Sum", [i.name for i in ins], ["y"], name="total")
onnx.save(helper.make_model(helper.make_graph([total], "g", ins, outs), ir_version=8, opset_imports=[
    helper.make_opsetid("", 17)]), "sum.onnx")
END
braid info sum.onnx --device host
"$BRAID" info "$ROOT/tests/cli/models/text.onnx" --device host -n 4 2>&1 >/dev/null || echo "exit code $?"
# what is said of several lanes: once, folded, on the host
"$PYTHON" - <<'END2'
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
ins = [helper.make_tensor_value_info("a", T.FLOAT, [1, 256]), helper.make_tensor_value_info("b", T.FLOAT, [4, 4])]
outs = [helper.make_tensor_value_info(name, T.FLOAT, None) for name in ("y", "z")]
weight = numpy_helper.from_array(np.ones([256, 256], np.float32), "w")
nodes = [helper.make_node("MatMul", ["a", "w"], ["y"], name="product"), helper.make_node("Relu", ["b"], ["r"], name="relu"),
         helper.make_node("Det", ["r"], ["d"], name="det"), helper.make_node("Add", ["y", "d"], ["z"], name="add")]
onnx.save(helper.make_model(helper.make_graph(nodes, "g", ins, outs, [weight]), ir_version=8, opset_imports=[
    helper.make_opsetid("", 17)]), "kinds.onnx")
END2
for options in '' '-n 64' '-n 64 --shared b' '-n 3 --shared a --shared b'; do
    echo "kinds.onnx $options"
    "$BRAID" info kinds.onnx $options | sed '1,/^operator   Relu/d; s/rows [0-9]*$/rows N/'
done
