# lanes: which inputs have them, how many, what comes out
m=$ROOT/tests/cli/models
$PYTHON - <<'END'
import numpy as np
a = np.arange(24, dtype=np.float32)
np.save("image.npy", a[:12].reshape(1, 3, 2, 2))
np.save("first.npy", a.reshape(2, 3, 2, 2))  # the model's first dim is 1
np.save("axis.npy", a.reshape(2, 1, 3, 2, 2))  # one axis more
np.save("single.npy", a[:12].reshape(1, 1, 3, 2, 2))
np.save("none.npy", a[:0].reshape(0, 3, 2, 2))
np.save("wrong.npy", a.reshape(2, 3, 4, 1))
np.save("x3.npy", a[:12].reshape(3, 2, 2))
np.save("many.npy", np.arange(600 * 12, dtype=np.float32).reshape(600, 3, 2, 2))
for i in range(3): np.save(f"in{i}.npy", np.float32([[i], [10 * i]]))
indices = np.zeros((600, 1), np.int64)
indices[[3, 400, 599]] = 7
np.save("many_indices.npy", indices)
np.save("wide.npy", np.float32([[1, 2], [3, 4]]))
END
one() { model=$1; shift; braid run "$m/$model.onnx" --device host "$@"; }
load() { $PYTHON -c "import numpy, sys; [print(p, a.shape, a.ravel()[[0, -1]].tolist()) for p in sys.argv[1:] for a in [numpy.load(p)]]" "$@"; }

one nchw --input image.npy
one nchw --input first.npy
one nchw --input axis.npy
one nchw --input axis.npy -n 2
one nchw --input single.npy
one nchw --input image.npy -n 1
one nchw --input image.npy --lane image
one nchw --input wrong.npy
one nchw --input wrong.npy --lane image
one rowN --input wrong.npy --lane x
one nchw --input first.npy --shared image
one nchw --input none.npy
one nchw --input image.npy -n 2
one nchw --input first.npy -n 3
one nchw --input first.npy -n 1,2
one nchw --input first.npy -n 0
one nchw --input first.npy --lane other
one nchw --input first.npy --shared image --lane image
one nchw --random -n 3 --seed 5
one nchw --random --seed 6
one float --input x3.npy
one float --input x=1,2 --input x=3,4 --input x=5,6
one float --input 'in*.npy'
one float --input 'x=in[02].npy' --top 1
one float --input 'x=in[02].npy' --top 1 --json | sed 's/"wall_ms": [^,]*/"wall_ms": T/'
one float --input 'x=missing*.npy'
one float --input in0.npy --input wide.npy
one float --input in0.npy --input in1.npy -n 3
one float --input in0.npy --input in1.npy --shared x
one names --input a/b=1 --input a_b=2 --input a_b=3
one names --input a/b=1 --random -n 3
one names --input a/b=1 --random -n 3 --shared a_b
one names --input a/b=1 --input a/b=2 --input a_b=1 --input a_b=2 --input a_b=3
one text --input s=one,two --input s=three,four
one float --input 'in*.npy' --output-dir out
one float --input 'in*.npy' --output-dir out --split-outputs
one float --input in1.npy --output-dir alone --split-outputs
one float --input in1.npy --split-outputs
load out/x.npy out/0/x.npy out/2/x.npy alone/0/x.npy
one nchw --input many.npy --output-dir rounds
one nchw --input many.npy -q -v 2>&1 | grep -c '600 lanes'
load rounds/image.npy
# on a terminal: what is done and how fast, wiped when it is over; then one line that stays
cat >terminal.py <<'END'
import os
import pty
import re
import subprocess
import sys

ours, theirs = pty.openpty()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=theirs, check=True)
os.close(theirs)
text = b""
try:
    while part := os.read(ours, 4096):
        text += part
except OSError:
    pass
print(re.sub(r"[0-9]+\.[0-9]+", "T", text.decode()).replace("\r\n", "\n").replace("\r\33[K", "<"), end="")
END
$PYTHON terminal.py "$BRAID" run "$m/nchw.onnx" --device host --input many.npy
$PYTHON terminal.py "$BRAID" run "$m/nchw.onnx" --device host --input many.npy -q
# a lane that the model cannot take fails alone
for device in host ''; do
    pick() { braid run "$m/pick.onnx" ${device:+--device $device} "$@"; }
    pick --input i=1 --input i=9 --input i=3
    pick --input i=1 --input i=9 --input i=3 --top 1
    pick --input i=1 --input i=9 --input i=3 --output-dir picked
    ls picked 2>/dev/null || true
    pick --input i=1 --input i=9 --input i=3 --output-dir picked --split-outputs
    ls picked
    load picked/0/y.npy picked/2/y.npy
    rm -r picked
    pick --input i=8 --input i=9
    pick --input i=8 --input i=9 --input i=0
    pick --input many_indices.npy --output-dir picked
    "$BRAID" run "$m/pick.onnx" ${device:+--device $device} --input i=1 --input i=-9 --top 1 --json 2>err.txt |
        $PYTHON -c "import json, sys; r = json.load(sys.stdin)['runs'][0]; y = r['outputs'][0]; print(r['failed_lanes'], y['top'], y['first_values'])"
    cat err.txt
done
# through a model with nodes, on the device: lanes are what runs alone give
braid run "$ROOT/examples/digits/digits.onnx" --input "image=$ROOT/examples/digits/images/00[0-6]-*.png" --top 1 --labels "$ROOT/examples/digits/labels.txt" | sed 's/  *[-0-9.]*$//'
digits() { "$BRAID" run "$ROOT/examples/digits/digits.onnx" -q "$@" >out.txt 2>&1 || cat out.txt; }
digits --random -n 9 --output-dir nine
for seed in 0 4 8; do digits --random --seed $seed --output-dir seed$seed; done
$PYTHON -c "
import numpy as np
nine = np.load('nine/logits.npy')
print(nine.shape, [nine[k].tobytes() == np.load(f'seed{k}/logits.npy').tobytes() for k in (0, 4, 8)])"
digits --random -n 2 --compare
grep -c 'within' out.txt
