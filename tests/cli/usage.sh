braid
braid --version
braid nosuch
braid run
braid run --nosuch
braid run model.onnx extra
braid run model.onnx --seed
braid run model.onnx --top x
braid run missing.onnx --device host
braid ops extra
braid bench --help
# no line of help is longer than 120 columns
for command in run check info graph bench profile devices ops; do
    "$BRAID" $command --help | awk -v c=$command 'length > 120 { print c ": " $0 }'
done
