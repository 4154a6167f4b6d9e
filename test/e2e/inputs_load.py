#!/usr/bin/env python3
"""The benchmark of the listening inputs on a small scale, for its counts alone: as fast as the senders can, every record must be in the archive once, every ERROR and FATAL in both tables once; with many connections
that all have unfinished messages; and beside a delivery that is stuck, within a time that no waiting for it would allow."""
import os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test/tools"))
from harness import BIN

build = os.path.dirname(os.path.abspath(BIN))
work = os.path.join(os.environ.get("FRAZIL_TEST_DIR", "/tmp"), f"inputs-load-{os.getpid()}")
made = subprocess.run(["make", f"B={build}", f"{build}/bench/load", f"{build}/bench/floor_inputs"], cwd=ROOT, capture_output=True, text=True)
if made.returncode:
    sys.exit(f"inputs_load: {made.stderr}")
ok = True
for case in ("forward", "forward-gzip", "otlp", "connections", "stuck"):
    p = subprocess.run([sys.executable, f"{ROOT}/bench/bench_inputs.py", "--dir", work, "--records", "120000", "--only", case], env={**os.environ, "FRAZIL_BUILD": build}, capture_output=True, text=True)
    ok &= p.returncode == 0
    print(f"{'ok' if p.returncode == 0 else 'FAILED'}: {case}" + ("" if p.returncode == 0 else f"\n{p.stdout}{p.stderr}"), flush=True)
subprocess.run(["rm", "-rf", work])
sys.exit(0 if ok else 1)
