"""The figures of one repeat: what the laboratory counted, who shares pages, and predicted times."""

from judge import cores
from programs import COUNTS, LARGE, MOVED, PROGRAMS, SMALL, SWEEPS, THREADS, TRANSFORMED
from recordings import AS_PLACED, all_local, noted_bytes, recorded, shared, simulate

PLACED = {"default": "first-touch", "matched": AS_PLACED}


class Repeat:
    """Recordings of one repeat, each with a run of its plain build where times are predicted."""

    def __init__(self, size, number, reuse):
        self.size, self.number, self.reuse = size, number, reuse

    def record(self, program, form, machine, timed=True):
        sizes = (PROGRAMS[program].small if machine == SMALL else PROGRAMS[program].large)[self.size]
        return recorded(program, form, sizes, THREADS[machine], machine, self.number, plain=timed, reuse=self.reuse)

    def scaling(self, program):
        """By threads and form on the larger machine, of recordings with 32 threads; the first at other core factors too."""
        forms = {form: self.record(program, form, LARGE) for form in PLACED}
        found = {"factors": {}, "threads": {
            str(threads): {form: simulate(profile, LARGE, threads, PLACED[form]) for form, profile in forms.items()}
            for threads in COUNTS}}
        if self.number == 0:
            for factor in cores.plausible(LARGE):
                found["factors"][str(factor)] = {
                    str(threads): {form: simulate(profile, LARGE, threads, PLACED[form], factor=factor)
                                   for form, profile in forms.items()} for threads in (COUNTS[0], COUNTS[-1])}
            if program == "cg":  # what caches make of the accesses that the laboratory counts
                found["lines"] = {policy: simulate(forms["default"], SMALL, THREADS[SMALL], policy)["remote lines"]
                                  for policy in ("first-touch", "frequency")}
        return found

    def sharing(self, program):
        """By form, per cent of pages by class."""
        return {form: shared(self.record(program, form, SMALL, timed=form == "default" and program in MOVED)) for form in PLACED}

    def moving(self, program):
        """Predicted times by default and of computing where all is local; bytes that the notes have moving at this size."""
        default, redistribute = (self.record(program, form, SMALL) for form in ("default", "redistribute"))
        factors = cores.plausible(SMALL) if self.number == 0 else []

        def at(factor):
            before = simulate(default, SMALL, THREADS[SMALL], "first-touch", factor=factor)
            computing = simulate(redistribute, SMALL, THREADS[SMALL], AS_PLACED, factor=factor, file=all_local())
            return {"default": before, "computing": computing}

        return {**at(None), "factors": {str(f): at(f) for f in factors}, "noted": noted_bytes(redistribute)}

    def program(self, name):
        found = {"scaling": self.scaling(name)}
        if name in SWEEPS:
            found["sharing"] = self.sharing(name)
        if name in MOVED:
            found["moving"] = self.moving(name)
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
