"""gather.py RESULTS.json KEY COMMAND...: runs the command with `-o FILE`; what FILE then says becomes row KEY."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

results, key, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "row.json"
    code = subprocess.run([*command, "-o", str(file)]).returncode
    if code == 0:
        known = json.loads(results.read_text()) if results.exists() else {"rows": {}}
        known["rows"][key] = json.loads(file.read_text())
        results.with_suffix(".new").write_text(json.dumps(known, indent=1) + "\n")
        os.replace(results.with_suffix(".new"), results)
sys.exit(code)
