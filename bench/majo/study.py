"""The figures of one repeat: what the laboratory counted, who shares pages, and predicted times."""

from judge import cores
from programs import CLASS_B_OF_CG, COUNTS, LARGE, MOVED, PROGRAMS, SMALL, SWEEPS, THREADS, TRANSFORMED
from recordings import AS_PLACED, all_local, noted_bytes, recorded, shared, simulate
from samples import few

PLACED = {"default": "first-touch", "matched": AS_PLACED}


class Repeat:
    """Recordings of one repeat, each with a run of its plain build where times are predicted."""

    def __init__(self, size, number, reuse):
        self.size, self.number, self.reuse = size, number, reuse

    def record(self, program, form, machine, timed=True):
        sizes = (PROGRAMS[program].small if machine == SMALL else PROGRAMS[program].large)[self.size]
        return recorded(program, form, sizes, THREADS[machine], machine, self.number, plain=timed, reuse=self.reuse)

    def scaling(self, program):
        """By threads and form on the larger machine, of recordings with 32 threads; for the fewest and the most threads at other core
        factors, too."""
        forms = {form: self.record(program, form, LARGE) for form in PLACED}

        def at(threads, factor=None):
            return {form: simulate(profile, LARGE, threads, PLACED[form], factor=factor) for form, profile in forms.items()}

        found = {"threads": {str(threads): at(threads) for threads in COUNTS}}
        ends = (COUNTS[0], COUNTS[-1])
        found["factors"] = {str(f): {str(t): found["threads"][str(t)] if f == cores.factor(LARGE) else at(t, f) for t in ends}
                            for f in cores.plausible(LARGE)}
        return found

    def cached(self):
        """What the model's caches make of the accesses that the laboratory counts: remote share of the lines that cg fetches at the size of
        NAS's class B, whose vectors fit into each thread's cache."""
        profile = recorded("cg", "default", CLASS_B_OF_CG, THREADS[SMALL], SMALL, f"class-b-{self.number}", reuse=self.reuse)
        return {policy: simulate(profile, SMALL, THREADS[SMALL], policy)["remote lines"] for policy in ("first-touch", "frequency")}

    def sampled(self):
        """bt's pages by class, of the same recording with few of its accesses."""
        profile = self.record("bt", "default", SMALL)
        return shared(few(profile, profile.with_name(f"{profile.name}-sampled"), self.number))

    def sharing(self, program):
        """By form, per cent of pages by class."""
        return {form: shared(self.record(program, form, SMALL, timed=form == "default" and program in MOVED)) for form in PLACED}

    def moving(self, program):
        """Predicted times by default and of computing where all is local; bytes that the notes have moving at this size."""
        default, redistribute = (self.record(program, form, SMALL) for form in ("default", "redistribute"))
        def at(factor):
            before = simulate(default, SMALL, THREADS[SMALL], "first-touch", factor=factor)
            computing = simulate(redistribute, SMALL, THREADS[SMALL], AS_PLACED, factor=factor, file=all_local())
            return {"default": before, "computing": computing}

        default_factor = at(None)
        factors = {str(f): default_factor if f == cores.factor(SMALL) else at(f) for f in cores.plausible(SMALL)}
        return {**default_factor, "factors": factors, "noted": noted_bytes(redistribute)}

    def program(self, name):
        found = {"scaling": self.scaling(name)}
        if name in SWEEPS:
            found["sharing"] = self.sharing(name)
        if name in MOVED:
            found["moving"] = self.moving(name)
        if name == "cg":
            found["cached"] = self.cached()
        if name == "bt":
            found["sampled"] = self.sampled()
        return found


def scaled_bytes(program, size, lab):
    """The bytes that the laboratory's kernel migrated, at the recorded size: they grow with the arrays and the iterations."""
    row = PROGRAMS[program]
    (n, iterations), (small, few) = row.small[size], row.lab
    return lab["migrated"] * row.points(n) / row.points(small) * iterations / few


def agreement(lab, reuse):
    """The model's remote share of exactly what the laboratory ran, beside what was counted there (first repeat)."""
    found = {}
    for program in TRANSFORMED:
        for form, policy in PLACED.items():
            name = "lab-0" if form == "default" else "lab-matched"
            profile = recorded(program, form, PROGRAMS[program].lab, THREADS[SMALL], SMALL, name, reuse=reuse)
            found[f"{program}, {form}"] = [lab[f"{program} {form}"]["remote"],
                                           simulate(profile, SMALL, THREADS[SMALL], policy)["remote"]]
    return found
