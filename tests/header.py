"""Every function of include/braid/braid.h stands under a comment and is called in a test and in an example."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
header = (root / "include/braid/braid.h").read_text()
tests = "\n".join(p.read_text() for p in sorted((root / "tests").rglob("*.[ch]")))
examples = "\n".join(p.read_text() for p in sorted((root / "examples").glob("*.c")))
faults = []
declared = 0
for paragraph in re.split(r"\n\s*\n(?!   )", header):  # a comment may have paragraphs of its own, indented
    told = False
    for item in re.findall(r"^/\*|^BRAID_API\b[^;]*;.*", paragraph, re.M):
        if item == "/*":
            told = True
            continue
        declared += 1
        name = re.search(r"\b(braid_\w+)\(", item).group(1)
        if not told and "/*" not in item:
            faults.append(f"{name}: no comment")
        if not re.search(rf"\b{name}\(", tests):
            faults.append(f"{name}: no test calls it")
        if not re.search(rf"\b{name}\(", examples):
            faults.append(f"{name}: no example calls it")
print("\n".join(faults) or f"{declared} functions")
sys.exit(bool(faults) or declared < 30)
