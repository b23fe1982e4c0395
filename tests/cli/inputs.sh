# every kind of input, through models whose outputs are their inputs
m=$ROOT/tests/cli/models
$PYTHON - <<'END'
import numpy as np
a = np.arange(6, dtype=np.float32).reshape(2, 3)
np.save("a.npy", a)
np.save("fortran.npy", np.asfortranarray(a))
np.save("double.npy", a.astype(np.float64))
np.savez("a.npz", x=a, other=-a)
np.savez_compressed("packed.npz", x=a)
a.tofile("a.bin")
open("a.pb", "wb").write(b"\x08\x02\x08\x03\x10\x01\x4a\x18" + a.tobytes())
open("typed.pb", "wb").write(b"\x0a\x02\x02\x03\x10\x01\x22\x18" + a.tobytes())
open("short.pb", "wb").write(b"\x08\x02\x08\x03\x10\x01\x4a\x14" + a.tobytes()[:20])
open("cut.npy", "wb").write(open("a.npy", "rb").read()[:-1])
END
one() { model=$1; shift; braid run "$m/$model.onnx" --device host "$@"; }

one float
one float --input x=a.npy
one float --input a.npy
one float --input x=fortran.npy
one float --input x=a.npz
one float --input x=a.npz:other
one float --input x=packed.npz
one float --input x=a.npz:nosuch
one float --input x=a.bin
one float --input x=a.pb
one float --input x=typed.pb
one float --input x=short.pb
one float --input x=cut.npy
one float --input x=double.npy
one float --input x=1,2.5,-3e2,nan
one float --input x=1,2,3
one float --input x=1,2,3 --shape x=1,3
one float --input x=1,zwei
one float --input x=missing.npy
one float --input y=1,2
one float --random --seed 3 --dim N=2
one float --random x=5:6 --dim N=2
one float --random
one float --input x=1,2 --input x=3,4
one types --input half=1,65520 --input brain=1,3.1415926 --input long=-9223372036854775808,0x10 --input flag=true,0 --input byte=0,255 --input tiny=-128,127,1
one types --random
one types --random --input byte=0,256
one text --input s=one,two
