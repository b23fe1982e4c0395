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
