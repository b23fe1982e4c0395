# info: what is said of lanes: nothing without -n, how each step goes about them with it
digits=$ROOT/examples/digits/digits.onnx
"$BRAID" info "$digits" | grep -E 'lane|round|phase|device|wave'
"$BRAID" info "$digits" -n 64 | grep -E 'lane|round'
