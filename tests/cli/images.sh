# PNG and JPEG: layouts, channels, scaling
m=$ROOT/tests/cli/models
$PYTHON - <<'END'
import struct, zlib
def png(path, width, height, kind, rows):
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    data = zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))
                           + chunk(b"IDAT", data) + chunk(b"IEND", b""))
png("rgb.png", 2, 2, 2, [[255, 0, 0, 0, 255, 0], [0, 0, 255, 51, 102, 204]])
png("gray.png", 4, 2, 0, [[0, 10, 20, 30], [40, 50, 60, 70]])
png("big.png", 4, 4, 2, [[i * 16 + j for j in range(12)] for i in range(4)])
open("bad.png", "wb").write(open("rgb.png", "rb").read()[:40])
open("bad.jpg", "wb").write(b"\xff\xd8\xff\xe0\0\x10JFIF")
open("text.png", "w").write("no image")
open("gray.jpg", "wb").write(bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123251d"
    "283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffc0000b08000800080101"
    "1100ffc4001f0000010501010101010100000000000000000102030405060708090a0bffc400b51000020103030204030505"
    "04040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a"
    "25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a8384858687"
    "88898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2"
    "e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffda0008010100003f002bffd9"))  # 8 x 8, all 128
END
one() { model=$1; shift; braid run "$m/$model.onnx" --device host "$@"; }
one nchw --input rgb.png --json | grep -A 14 first_values
one nchw --input rgb.png --scale 1 --channels bgr
one nchw --input rgb.png --mean 0.5 --std 0.5
one nchw --input rgb.png --mean 0.5,0.5
one nchw --input big.png
one nchw --input big.png --resize none
one nchw --input big.png --resize 2x2 --scale 1
one nchw --input gray.png --scale 1
one nhwc --input rgb.png --scale 1
one nhwc --input rgb.png --layout nchw
one bytes --input gray.png
one bytes --input rgb.png
one nchw --input bad.png | sed 's/\(png\): [a-z].*/\1: .../'
one nchw --input bad.jpg | sed 's/\(jpeg\): .*/\1: .../'
one bytes --input gray.jpg
one nhwc --input gray.jpg --scale 1
one nchw --input text.png
one float --input rgb.png
