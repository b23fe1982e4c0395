"""The GPU's clocks while something is measured, where nvidia-smi is there: one process that samples twice a second."""
import shutil
import subprocess
import time

QUERY = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw", "--format=csv,noheader,nounits", "-lms", "500"]


class Clocks:
    def __init__(self, path):
        self.path, self.process, self.at = path, None, 0
        if shutil.which(QUERY[0]):
            with open(path, "wb") as out:
                self.process = subprocess.Popen(QUERY, stdout=out, stderr=subprocess.DEVNULL)
            time.sleep(0.1)

    def rows(self):
        lines = self.path.read_text(errors="replace").splitlines() if self.process else []
        parts = [line.split(",") for line in lines]
        whole = [p for p in parts if len(p) == 3 and all(x.strip().replace(".", "").isdigit() for x in p)]
        return [[float(x) for x in p] for p in whole]

    def mark(self):
        self.at = len(self.rows())

    def since(self):
        """Least, middle and largest SM clock and the largest power since mark()."""
        rows = self.rows()[self.at:]
        if not rows:
            return ""
        sm = sorted(r[0] for r in rows)
        return f"[SM {sm[0]:.0f} {sm[len(sm) // 2]:.0f} {sm[-1]:.0f} MHz, {max(r[2] for r in rows):.0f} W]"

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
