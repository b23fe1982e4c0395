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
