"""The files of a spool as a test sees them: which records lie where, and ways to damage them. The layout stands in src/spool/spool_int.h."""
import collections, glob, os, re, struct

HEAD, FRAME = 88, struct.Struct("<QIIQIIqQII")


Frame = collections.namedtuple("Frame", "at size first n ids")
Segment = collections.namedtuple("Segment", "spool name first end")  # end: behind the last of its records


def segments(directory):
    return sorted(glob.glob(f"{directory}/*.seg"))


def frames(path):
    """Frames from the head on as long as they are plausible. A record's id stands in its bytes as #<id>#."""
    data, at, out = open(path, "rb").read(), HEAD, []
    while at + FRAME.size <= len(data):
        _, _, size, first, n, _, _, _, _, _ = FRAME.unpack_from(data, at)
        if size < FRAME.size or size % 8 or at + size > len(data) or n == 0:
            break
        out.append(Frame(at, size, first, n, [int(x) for x in re.findall(rb"#(\d+)#", data[at:at + size])]))
        at += size
    return out


def ids(v):
    return [i for f in v for i in f.ids]


def torn(directory, rng):
    """What a crash in the middle of a write leaves: the beginning of a frame, or noise, at the end of the last segment. Nobody was told of it."""
    v = segments(directory)
    if not v:
        return "no segment yet"
    have = frames(v[-1])
    data = open(v[-1], "rb").read()
    rest = data[have[-1].at:have[-1].at + have[-1].size - rng.randrange(1, have[-1].size)] if have and rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 5000))
    with open(v[-1], "ab") as f:
        f.write(rest)
    return f"{directory.rsplit('.', 1)[1]}: {len(rest)} bytes of a torn write"


def flip(path, rng):
    v = frames(path)
    f = rng.choice(v)
    at = f.at + rng.randrange(f.size)
    with open(path, "r+b") as s:
        s.seek(at)
        old = s.read(1)[0]
        s.seek(at)
        s.write(bytes([old ^ 1 << rng.randrange(8)]))
    return f"a bit of {os.path.basename(path)} at {at} flipped", f.ids


def behead(path, rng):
    hit = ids(frames(path))
    with open(path, "r+b") as s:
        s.write(bytes(40))
    return f"the head of {os.path.basename(path)} overwritten", hit


def remove(path, rng):
    hit = ids(frames(path))
    os.unlink(path)
    return f"{os.path.basename(path)} removed", hit


def shorten(path, rng):
    v = frames(path)
    cut = rng.choice(v[-3:]).at + rng.randrange(1, 50)
    hit = ids([f for f in v if f.at + f.size > cut])
    os.truncate(path, cut)
    return f"{os.path.basename(path)} cut off at {cut}", hit


def damage(directory, rng):
    """Does something to a segment that has frames. Returns what, to which segment, and the ids that were hit. The first and the last segment are not removed: with them the log would end or begin elsewhere, which a start
    refuses with numbers (test/e2e/spool.py)."""
    v = [p for p in segments(directory) if frames(p)]
    if not v:
        return "nothing to damage", None, []
    ways = [(flip, rng.choice(v)), (behead, rng.choice(v)), (shorten, rng.choice(v))]
    everything = segments(directory)
    middle = [p for p in v if p not in (everything[0], everything[-1])]
    if middle:
        ways += [(remove, rng.choice(middle))] * 2
    way, path = rng.choice(ways)
    v = frames(path)
    name = f"{os.path.basename(directory)}/{os.path.basename(path)[:20]}"
    what, hit = way(path, rng)
    return what, Segment(os.path.basename(directory), name, v[0].first, v[-1].first + v[-1].n), hit
