# info: what is said of lanes: nothing without -n, how each step goes about them with it
digits=$ROOT/examples/digits/digits.onnx
"$BRAID" info "$digits" | grep -E 'lane|round|phase|device|wave'
"$BRAID" info "$digits" -n 64 | grep -E 'lane|round'
digits_info() { "$BRAID" info "$digits" "$@" 2>&1 >/dev/null || echo "exit code $?"; }
digits_info --shared image
digits_info --shared other -n 2
