"""The web page at size, in Chromium, on a made-up fleet of 50,000 GPUs with 100,000 pending jobs: one JSON object."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    modules = subprocess.run([os.path.join(ROOT, "web", "modules")], capture_output=True, text=True)
    if modules.returncode != 0:
        raise SystemExit(f"the page is not measured: {modules.stdout.strip()}")
    berth = os.environ.get("BERTH") or os.path.join(ROOT, "build", "release", "berth")
    sys.exit(subprocess.run(["node", os.path.join(ROOT, "web", "tests", "bench.mjs")], env={**os.environ, "BERTH": berth}).returncode)
