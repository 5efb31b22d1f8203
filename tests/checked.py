"""What a suite in Python counts with: a line for each check says whether it holds, and the last line how many did, which
tools/test adds up."""

import sys

SHOWN = 25  # last lines of what a command said


class Checks:
    """Called for each check. With `quiet` only those that fail are said."""

    def __init__(self, quiet=False):
        self.quiet, self.passed, self.failed, self.skipped = quiet, 0, 0, 0

    def __call__(self, holds, text, said=""):
        """Returns whether it holds. If it does not, the end of `said` is shown."""
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds or not self.quiet:
            print("ok    " if holds else "FAILED", text, flush=True)
        if not holds:
            print("".join(f"    {line}\n" for line in str(said).splitlines()[-SHOWN:]), end="", flush=True)
        return bool(holds)

    def skip(self, why):
        self.skipped += 1
        print("skipped:", why, flush=True)

    def end(self):
        """Ends the process: with status 1 if a check failed, or if nothing was checked and nothing skipped."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        sys.exit(self.failed > 0 or self.passed + self.skipped == 0)
