# where results go
m=$ROOT/tests/cli/models
braid run "$m/float.onnx" --device host --input x=1,2,3,4 --output-dir deep/er
$PYTHON -c "import numpy; a = numpy.load('deep/er/x.npy'); print(a.dtype, a.tolist())"
braid run "$m/float.onnx" --device host --input x=1,2 --input x=3,4 --output-dir rounds
$PYTHON -c "import numpy; print(numpy.load('rounds/x.npy').tolist())"
braid run "$m/float.onnx" --device host --input x=1,2 --output-dir /dev/null/x
braid run "$m/names.onnx" --device host --input a/b=1 --input a_b=2 --output-dir out
braid run "$m/names.onnx" --device host --input a/b=1 --input a_b=2 --output-dir out --outputs a/b
ls out
braid run "$m/names.onnx" --device host --input a/b=1 --input a_b=2 --outputs nosuch
braid run "$m/types.onnx" --device host --random --output-dir types
$PYTHON -c "
import numpy
for n in ('half', 'brain', 'long', 'flag', 'byte', 'tiny'): print(n, numpy.load(f'types/{n}.npy').dtype)"
braid run "$m/text.onnx" --device host --input s=one,drei --output-dir text
$PYTHON -c "import numpy; print(numpy.load('text/s.npy').tolist())"
printf 'zero\r\none\ntwo\n' > labels.txt
braid run "$m/float.onnx" --device host --input x=1,3,2,0 --top 3 --labels labels.txt
braid run "$m/float.onnx" --device host --input x=1,3,2,0 --top 2 --probabilities
braid run "$m/float.onnx" --device host --input x=1,3,inf,nan --json --top 1 | sed 's/"wall_ms": [^,]*/"wall_ms": T/'
