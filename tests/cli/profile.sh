# profile: every step with its time, of one lane and of several
digits=$ROOT/examples/digits/digits.onnx
table() { "$BRAID" profile "$digits" -q --runs 1 --warmup 1 "$@" | sed 's/  */ /g; s/^ //; s/[0-9][0-9]*\.[0-9]*/T/g'; }
table | head -1
table | sed '/pipelines made/,$d' | grep -c ' Gemm \| MatMul '
table | grep 'on the device' | sed 's/^[0-9]* /S /'
table -n 3 | grep 'on the device' | sed 's/^[0-9]* /S /'
# a step of many lanes does the work of all of them
for n in 1 8; do "$BRAID" profile "$digits" -q --json -n $n >steps$n.json; done
"$PYTHON" - <<'END'
import json
one, eight = (json.load(open(f"steps{n}.json")) for n in (1, 8))
print(sorted(one[0]))
print("times", all(s["time_ns"] > 0 for s in one + eight))
print("flops", sum(s["flops"] for s in eight) / sum(s["flops"] for s in one))
END
"$BRAID" profile "$digits" -q -n 2 --trace trace.json >/dev/null
"$PYTHON" -c "
import json
events = [e for e in json.load(open('trace.json'))['traceEvents'] if e['ph'] != 'M']
print(all(e['ph'] == 'X' and e['dur'] > 0 for e in events), len(events) > 3)"
"$BRAID" profile "$digits" --device host -n 2 | grep 'on the device' | sed 's/  */ /g; s/[0-9][0-9]*\.[0-9]*/T/g; s/[0-9]* steps/S steps/'
# what making pipelines took: totals and the slowest; or each of them, made once, with what the driver tells of it
pipelines() { sed 's/[0-9][0-9]*\.[0-9]*/T/g; s/[0-9][0-9]* pipelines/P pipelines/; s/[0-9][0-9]* from the/C from the/; s/  */ /g'; }
"$BRAID" profile "$digits" -q | grep -A 1 'pipelines made' | pipelines
"$BRAID" profile "$digits" -q --pipelines >pipelines.txt
head -2 pipelines.txt | pipelines
grep -c "Conv '/0/Conv'" pipelines.txt
"$BRAID" profile "$digits" -q --pipelines --json -n 3 >pipelines.json
"$PYTHON" - <<'END'
import json
made = json.load(open("pipelines.json"))
print(sorted(made[0]))
print("once", len({(p["kernel"], p["variant"], p["module_bytes"]) for p in made}) == len(made) > 2)
print("times", all(0 < p["busy_ns"] <= 1.1 * p["create_ns"] for p in made), all(p["module_bytes"] % 4 == 0 for p in made))
print("words", [("float32" in p["variant"]) for p in made if p["op"] == "Gemm"])
END
"$BRAID" profile "$digits" --device host --pipelines | pipelines
# nothing to do
"$BRAID" profile "$ROOT/tests/cases/graph-without-nodes/model.onnx" -q --runs 1 | sed -n '2s/[0-9][0-9]*\.[0-9]*/T/gp'
for wrong in 0 1,2 x; do braid profile "$digits" -n $wrong; done
