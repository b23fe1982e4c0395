# check: ok, mismatch, unsupported, broken
case=$ROOT/tests/cases/graph-without-nodes
braid check "$case/model.onnx" --device host
braid check "$case/model.onnx" "$case" --device host
braid check "$case/model.onnx" "$case/test_data_set_0" --device host
mkdir data && cp "$case"/test_data_set_0/* data && chmod u+w data/*
printf '\010\003\020\007\072\003\001\002\011' > data/output_1.pb
braid check "$case/model.onnx" data --device host
braid check "$case/model.onnx" data --device host --rtol 100 --json
rm data/input_0.pb
braid check "$case/model.onnx" data --device host
braid check "$case/model.onnx" nosuch --device host
braid check "$ROOT/tests/cases/invalid-cycle/model.onnx" --device host
braid check "$ROOT/tests/cli/models/unknown.onnx" --device host
braid check "$ROOT/tests/cli/models/unknown.onnx" data --device host
# what is no model
printf 'This is no model.\n' >readme.onnx
: >empty.onnx
head -c 1000 "$ROOT/examples/digits/digits.onnx" >cut.onnx
for file in readme empty cut; do
    braid check $file.onnx
done
