"""Counting what holds."""

import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checked

counted = checked.Checks(quiet=True)
skip, end = counted.skip, counted.end


def check(name, holds, found=""):
    counted(holds, f"{name}{f': {found}' if found != '' else ''}")


def section(function, *arguments):
    """Runs it; an error in it is one failure, and the others go on."""
    try:
        function(*arguments)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        counted(False, f"{function.__name__} {' '.join(map(str, arguments))}: {type(error).__name__}: {reason}", traceback.format_exc())
