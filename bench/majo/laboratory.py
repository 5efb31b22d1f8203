"""Exact counts: the programs' forms on a virtual machine of two nodes, all five repeats in one boot."""

import json

from commands import lab
from programs import EXCLUDED, MOVED, PROGRAMS, REPEATS, SMALL, THREADS, TRANSFORMED
from recordings import FOLDER, NODEWISE, PLAIN, ROOT, identity, nodewise, recorded
from samples import few

PROFILED, SAMPLED = "profile", "sampled profile"
# Pages of an array: 64 KiB, from which on an allocation has pages of its own.
SMALLEST = 16


def profile_map(program, number, reuse, sampled=False):
    """The paper's profile-based placement: each page where it is accessed most, from this repeat's recording at this size, or from as few
    of its accesses as a sampled profile has."""
    profile = recorded(program, "default", PROGRAMS[program].lab, THREADS[SMALL], SMALL, f"lab-{number}", reuse=reuse)
    if sampled:
        profile = few(profile, profile.with_name(f"{profile.name}-sampled"), number)
    rules = FOLDER / "maps" / f"{program}-{number}{'-sampled' if sampled else ''}.map"
    rules.parent.mkdir(exist_ok=True)
    nodewise("map", profile, "--force", "--machine", SMALL, "--affinity", identity(SMALL, THREADS[SMALL]), "--policy", "frequency",
             "-o", rules)
    return f"map:{rules.relative_to(ROOT)}"


def lines(number, reuse):
    """What one repeat runs: (program, label) and the batch file's line."""
    found = {}
    for name in (*TRANSFORMED, *EXCLUDED):
        program = PROGRAMS[name]
        runs = [("default", "first-touch", "default", "nas")]
        if name in TRANSFORMED:
            runs += [(PROFILED, profile_map(name, number, reuse), "default", "nas"), ("matched", "first-touch", "matched", "nas")]
        if name in MOVED:
            runs.append(("redistribute", "first-touch", "redistribute", "nas"))
        if name == "ft":
            runs.append((SAMPLED, profile_map(name, number, reuse, sampled=True), "default", "nas"))
        if name == "is":
            runs.append(("master", "first-touch", "default", "master"))
        for label, policy, form, init in runs:
            words = [str(PLAIN / program.file), *program.arguments(form, program.lab, init)]
            found[f"{name} {label}"] = " ".join([policy, *words])
    return found


def measure(reuse):
    """By repeat, by program and label: `figures`."""
    wanted = [lines(number, reuse) for number in range(REPEATS)]
    batch, kept = FOLDER / "laboratory.batch", FOLDER / "laboratory.json"
    text = "\n".join(line for one in wanted for line in one.values()) + "\n"
    if reuse and kept.exists() and batch.read_text(encoding="utf-8") == text:
        return json.loads(kept.read_text(encoding="utf-8"))
    batch.write_text(text, encoding="utf-8")
    printed = lab([NODEWISE, "lab", "--machine", SMALL, "--cpus", THREADS[SMALL], "--huge-pages", "never", "--json", "--batch", batch],
                  OMP_NUM_THREADS=str(THREADS[SMALL]))
    runs = iter(json.loads(printed)["runs"])
    found = [{key: figures(key, next(runs)) for key in one} for one in wanted]
    kept.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return found


def figures(key, one):
    """Over arrays alone: the executable's own data are a few pages, which libraries read tables from. Per cent, counts and bytes."""
    if one["exit_status"] or not one["over_objects"]:
        raise SystemExit(f"reproduce-majo: {key}: status {one['exit_status']}, {one['notes']}")
    arrays = [o for o in one["objects"] if o["pages"] >= SMALLEST]
    matrices = [o["matrix"] for o in arrays]
    local, total = sum(m[n][n] for m in matrices for n in range(len(m))), sum(sum(map(sum, m)) for m in matrices)
    return {
        "remote": 100 * (1 - local / total),
        "accesses": total,
        "bytes": 4096 * sum(o["pages"] for o in arrays),
        "migrated": 4096 * one["kernel"].get("pgmigrate_success", 0),
        "remote by size": remote_by_size(arrays),
    }


def remote_by_size(arrays):
    """Remote accesses, by how many pages an array has."""
    found = {}
    for one in arrays:
        matrix, size = one["matrix"], str(one["pages"])
        found[size] = found.get(size, 0) + sum(map(sum, matrix)) - sum(matrix[n][n] for n in range(len(matrix)))
    return found
