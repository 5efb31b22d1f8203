"""Counting what holds."""

import traceback

passed, failed = 0, 0


def check(name, holds, found=""):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}{f': {found}' if found != '' else ''}", flush=True)


def section(function, *arguments):
    """Runs it; an error in it is one failure, and the others go on."""
    global failed
    try:
        function(*arguments)
    except Exception as error:
        failed += 1
        reason = str(error).partition("\n")[0]
        print(f"FAILED {function.__name__} {' '.join(map(str, arguments))}: {type(error).__name__}: {reason}", flush=True)
        print(traceback.format_exc(), flush=True)


def end():
    print(f"{passed} passed, {failed} failed", flush=True)
    raise SystemExit(failed > 0 or passed == 0)
