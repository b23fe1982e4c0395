"""What a packed kit does, step by step: the jobs of each step are made when their turn comes."""
import json
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

PYTHON = [sys.executable, "-B"]


@dataclass
class Job:
    key: str  # STEP/NAME
    command: list  # {seconds}: what is left for it, less `margin`
    limit: float
    environment: dict = field(default_factory=dict)
    program: bool = False  # one of ours, started without a script
    keep: bool = False  # all of its output goes to the log
    tell: str = ""  # the last line of output with this in it is its verdict
    partly: str = ""  # output that has this in it is not all of it
    cache: str = ""  # jobs with the same pipelines share a cache; side by side, the last writer would win
    margin: float = 5
    mark: pathlib.Path = None  # a file of this machine that says it is done, whatever earlier calls say

    def __post_init__(self):
        self.cache = (self.cache or self.key.split("/")[0]).replace("/", ".")

    def verdict(self, code):
        return {0: "ok", 77: "skipped", 75: "cut"}.get(code, "FAILED")


@dataclass
class Step:
    jobs: object  # call -> [Job]
    side_by_side: bool = False


def python(*command):
    return [*PYTHON, *map(str, command)]


def device(call, option="--device"):
    return [option, call.o.device] if call.o.device else []


def bench(call, *command):
    return python(call.root / "bench" / command[0], call.root / "bin/braid", *command[1:], *device(call))


def files_of(call):
    return call.root / "files"


# ---- tests


def files(call):
    """What --make gave, once a machine."""
    script = call.root / "make_models.py"
    what = ["clone"] if call.o.small else ["clone", "conv", "bert"]
    (call.root / "cache").mkdir(exist_ok=True)
    models = {"MODELS": str(call.root / "models")}
    out = []
    for name in what if script.exists() else ():
        mark = call.root / "cache" / f"files.{name}"
        made = python(call.root / "bench/kit/once.py", mark, sys.executable, "-B", script, files_of(call), name)
        out.append(Job(f"files/{name}", made, 240, models, mark=mark))
    return out


def model_names(call):
    listed = subprocess.run(python(call.root / "tests/models/run.py", "--list", "--models", call.root / "models"),
                            capture_output=True, text=True, check=True)
    names = listed.stdout.split()
    return [n for n in names if "mnist" in n or "dtln" in n] if call.o.small else names


def whole_models(call, step, program, limit, *more):
    if not (call.root / "bin" / program).exists():
        return []
    script = python(call.root / "tests/models/run.py", "--lanes", call.root / "bin" / program, "--models",
                    call.root / "models")
    return [Job(f"{step}/{name}", [*script, *more, name], limit, tell=": ", partly="too slow", margin=40,
                cache=f"model.{name}") for name in model_names(call)]


def models(call):
    return whole_models(call, "models", "model_lanes", 260, "--seconds", "{seconds}")


def plans(call):
    return whole_models(call, "plans", "model_plans", 200)


def units(call):
    rows = json.loads((call.root / "tests.json").read_text())
    rows += [["long.lanes_products", "unit_lanes_products", {"BRAID_TEST_ALL": "60", "BRAID_TEST_SEED": "2"}],
             ["long.ops_move_gpu", "unit_ops_move_gpu", {"BRAID_TEST_ALL": "1"}]]
    return [Job(f"units/{name}", [call.root / "bin" / program], 300, more, True, cache=program)
            for name, program, more in rows if (call.root / "bin" / program).exists()]


def clones_check(call):
    names = ("digits", "mlp") if call.o.small else ("digits", "mlp", "mnist", "cnn20")
    return [Job(f"clones-check/{name}", bench(call, "clones/check.py", name), 240, cache=f"clones.{name}")
            for name in names]


def random_runs(call):
    """Seeds that no earlier call used."""
    used = sum(key.startswith("random/") for key in call.known)
    kinds = (("random_graphs", ["--lanes", 45, "--nodes", 16], "runs with lanes"), ("random_plans", [], "next seed"))
    out = []
    for i in range(1 if call.o.small else max(2, call.o.jobs // 2)):
        program, more, tell = kinds[i % 2]
        seed = 1000000 * (used + i + 700)
        command = [call.root / "bin" / program, "--seed", seed, "--count", 100000, "--seconds", "{seconds}", *more]
        if (call.root / "bin" / program).exists():
            key = f"random/{program}-{seed}"
            out.append(Job(key, command, call.o.random + 30, {}, True, tell=tell, cache=key, margin=30))
    return out


def conformance(call):
    data, index = call.root / "cache/conformance", call.root / "tests/onnx"
    if not (call.root / "bin/onnx_run").exists() or call.o.small:
        return []
    line = ('"$0" -B "$1/generate.py" "$2" && LD_LIBRARY_PATH="$4" "$3" --data "$2" --index "$1/index.tsv" '
            '--expected "$1/expected.tsv"')
    return [Job("conformance/onnx", ["sh", "-c", line, sys.executable, index, data, call.root / "bin/onnx_run",
                                     call.root / "lib"], 300)]


# ---- measures


def machine(call):
    braid = call.root / "bin/braid"
    clocks = ["nvidia-smi", "-q", "-d", "CLOCK,POWER,PERFORMANCE"]
    out = [Job("machine/nvidia-smi", clocks, 20, keep=True)] if shutil.which(clocks[0]) else []
    return out + [Job("machine/devices", [braid, "devices"], 20, keep=True),
                  Job("machine/probe", [braid, "devices", "--probe"], 60, keep=True)]


def lane_jobs(call, step, names, *more):
    where = [files_of(call), call.root / "models"]
    point = ["--seconds", call.o.point, "--out", call.results / "lanes.json", "--budget", "{seconds}"]
    command = ["lanes/run.py", *where, *point, *more] + (["--lanes", "1,8"] if call.o.small else [])
    return files(call) + [Job(f"{step}/{name}", bench(call, *command, "--models", name), 120) for name in names]


def lanes(call):
    names = ["squeezenet", "cnn20", "mnist", "digits", "mobilenet_v2", "dtln_2", "ppocr_rec", "yolox_nano", "resnet50", "bert"]
    return lane_jobs(call, "lanes", ["digits", "mnist"] if call.o.small else names)


def free_order(call):
    names = ["digits"] if call.o.small else ["squeezenet", "cnn20", "dtln_2", "mobilenet_v2", "resnet50", "bert"]
    return lane_jobs(call, "free-order", names, "--free-order")


def clones(call):
    command = ["clones/run.py", call.results / "clones.json", "--seconds", call.o.point, "--budget", "{seconds}"]
    few = ["--copies", 4, "--grow", "2"] if call.o.small else []
    names = ["mlp"] if call.o.small else ["digits", "mnist", "mlp", "cnn20", "squeezenet", "mobilenet_v2"]
    shared = "mnist" if call.o.small else "mnist,cnn20,squeezenet"
    given = bench(call, *command, "--models", "", "--files", files_of(call), "--shared", shared)
    out = files(call) + [Job("clones/files", given, 120)]
    return out + [Job(f"clones/{name}", bench(call, *command, *few, "--models", name), 120) for name in names]


def branches(call):
    names = ["chains16"] if call.o.small else ["chains", "inception_v3", "nasnet", "heads", "dag300", "dag3000"]
    command = ["branches/run.py", call.results / "branches.json", "--seconds", call.o.point, "--budget", "{seconds}"]
    return [Job(f"branches/{name}", bench(call, *command, "--graphs", name), 90) for name in names]


def ort(call):
    site = call.root / "site"
    wheels = sorted((call.root / "wheels").glob("*.whl"))
    if not wheels:
        return []
    mark = call.root / "cache/ort.unpacked"
    unpack = [Job(f"ort/{w.name.split('-')[0]}", python(call.root / "bench/kit/once.py", mark.with_suffix(f".{i}"),
                                                        *python("-m", "zipfile", "-e", w, site)), 60,
                  mark=mark.with_suffix(f".{i}")) for i, w in enumerate(wheels)]
    names = ["mnist"] if call.o.small else ["mnist", "cnn20", "squeezenet", "mobilenet_v2", "resnet50", "bert"]
    script = python(call.root / "bench/kit/ort.py", call.results / "ort.json", "--files", files_of(call), "--seconds",
                    call.o.point)
    return files(call) + unpack + [Job(f"ort/{name}", [*script, name], 90, {"PYTHONPATH": str(site)}) for name in names]


def pipelines(call):
    """How long the driver takes for each pipeline, with no cache and with a filled one."""
    braid, cold = call.root / "bin/braid", {"__GL_SHADER_DISK_CACHE": "0"}
    name = "mnist" if call.o.small else "squeezenet"
    file = files_of(call) / f"{name}_b1_f32.onnx"
    each = ["--pipelines", "-q", *device(call)]
    ramp = python(call.root / "bench/kit/ramp.py", braid, file, 64, *device(call))
    lanes = [braid, "profile", file, "-n", 64, *each]
    out = files(call) + [Job(f"pipelines/{name}-64-cold", [*lanes, "--no-cache"], 120, cold),
                         Job(f"pipelines/{name}-ramp-cold", [*ramp, "--no-cache"], 120, cold),
                         Job(f"pipelines/{name}-ramp-filled", ramp, 90),
                         Job(f"pipelines/{name}-64-filled", lanes, 60),
                         Job(f"pipelines/{name}-1-cold", [braid, "profile", file, *each, "--no-cache"], 60, cold)]
    if not call.o.small:
        whole = ["sh", call.root / "bench/measure.sh", braid, files_of(call), call.o.device or "0"]
        out.append(Job("pipelines/measure", whole, 120, cold))
    for job in out:
        job.keep, job.tell = True, "made in" if "profile" in job.command else ""
    return out


def mm(call):
    if not (call.root / "bin/bench_mm").exists():
        return []
    most = [("squeezenet", 64), ("squeezenet", 1), ("resnet50", 64), ("mobilenet", 64), ("bert", 1), ("skinny", 1),
            ("square", 1)]
    sweep = [call.root / "bin/bench_mm", "-s", "{seconds}", *device(call, "-d")]
    gather = python(call.root / "bench/kit/gather.py", call.results / "mm.json")
    return [Job(f"mm/{n}-{k}", [*gather, f"{n}-{k}", *sweep, "-n", n, "-l", k], 100, margin=15, keep=True)
            for n, k in ([("odd", 1)] if call.o.small else most)]


STEPS = {"files": Step(files, True), "models": Step(models, True), "units": Step(units, True),
         "clones-check": Step(clones_check, True), "plans": Step(plans, True), "random": Step(random_runs, True),
         "conformance": Step(conformance, True), "machine": Step(machine), "lanes": Step(lanes),
         "free-order": Step(free_order), "clones": Step(clones), "branches": Step(branches), "ort": Step(ort),
         "pipelines": Step(pipelines), "mm": Step(mm)}
