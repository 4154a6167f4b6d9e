#!/usr/bin/env python3
"""Includes point one way: a room includes itself and the rooms that the Makefile's DEPS_room names, in ROOMS only earlier ones; file names are unique;
headers compile alone; names that must not be used do not occur; every fault point of the sources stands in fault.c's table and the other way round."""
import collections, os, re, subprocess, sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
os.chdir(root)
mk = open("Makefile").read()
rooms = re.search(r"^ROOMS\s*:=\s*(.*)$", mk, re.M).group(1).split()
deps = {m.group(1): m.group(2).split() for m in re.finditer(r"^DEPS_(\w+)[ \t]*:=[ \t]*(.*)$", mk, re.M)}
bad = []

for r in rooms:
    for d in deps[r]:
        if rooms.index(d) >= rooms.index(r):
            bad.append(f"Makefile: {r} may use {d}, which is not below it")

BANNED = re.compile(r"(?<![\w_])(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|strtok|malloc|calloc|realloc)\s*\(")
TALK = re.compile(r"\b(TODO|FIXME|XXX|not implemented|placeholder|for now)\b", re.I)
ALLOWED = {("src/base/mem.c", f) for f in ("malloc", "calloc", "realloc")}
names = collections.Counter()
faults_used = set()
for d, _, files in os.walk("src"):
    for f in sorted(files):
        if not f.endswith((".c", ".h")):
            continue
        path = os.path.join(d, f)
        room = path.split("/")[1]
        names[f] += 1
        text = open(path).read()
        code = re.sub(r'//[^\n]*|/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), text, flags=re.S)
        for n, line in enumerate(text.split("\n"), 1):
            m = re.match(r'#include "([^"]+)"', line)
            if m:
                target = m.group(1)
                other = target.split("/")[0]
                if not os.path.exists("src/" + target):
                    bad.append(f"{path}:{n}: {target} is not there")
                elif other != room and other not in deps.get(room, []):
                    bad.append(f"{path}:{n}: room {room} includes {target}")
                elif other != room and target.endswith("_int.h"):
                    bad.append(f"{path}:{n}: private header of room {other}")
            if TALK.search(line):
                bad.append(f"{path}:{n}: {line.strip()[:80]}")
        for n, line in enumerate(re.sub(r'"(\\.|[^"\\])*"', '""', code).split("\n"), 1):
            for m in BANNED.finditer(line):
                if (path, m.group(1)) not in ALLOWED:
                    bad.append(f"{path}:{n}: {m.group(1)} is banned")
        faults_used |= set(re.findall(r'fz_fault(?:_status|_hit)?\(\s*"([^"]+)"', text))
        faults_used |= set(re.findall(r'"((?:commit|checkpoint|file|source|report|dead-letter|spill)\.[a-z-]+)"', text)) if "fz_fault" in text and not path.endswith("fault.c") else set()
        if len(text.split("\n")) > 1000:
            bad.append(f"{path}: over 1,000 lines")

table = set(re.findall(r'^\s+"([a-z.-]+)",', open("src/base/fault.c").read(), re.M))
real = {f for f in faults_used if f in table or re.search(rf'fz_fault[a-z_]*\([^;]*"{re.escape(f)}"', "".join(open(os.path.join(d, x)).read() for d, _, fs in os.walk("src") for x in fs if x.endswith(".c")))}
for f in sorted(table - real):
    bad.append(f"src/base/fault.c: point {f} is never reached")
for f in sorted(real - table):
    bad.append(f"fault point {f} is not in the table of fault.c")
for f, n in names.items():
    if n > 1:
        bad.append(f"{f}: {n} files of this name")
for d, _, files in os.walk("src"):
    for f in sorted(files):
        if f.endswith(".h"):
            inc = os.path.join(d, f)[4:]
            p = subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-Isrc", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "-"], input=f'#include "{inc}"\n', text=True, capture_output=True)
            if p.returncode:
                bad.append(f"src/{inc} does not compile alone: {p.stderr.splitlines()[0] if p.stderr else ''}")
print("\n".join(bad) or f"includes and style: {sum(names.values())} files, {len(rooms)} rooms, {len(table)} fault points: in order")
sys.exit(bool(bad))
