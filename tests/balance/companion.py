"""What a balanced program must not notice of its companion: each case of companion.c, by name."""

import os
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent
CASES = {
    "grows": "a mapping that is held in part grows by mremap",
    "locals": "thread-local variables of 192 KiB",
    "forks": "a forked child that can have no thread is held by nothing",
    "drops": "the program changes its user",
}


def start(nodewise, env, program, case):
    return subprocess.Popen([nodewise, "balance", "--policy", "dominant", "--interval", "100ms", "--", program, case], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def cases(nodewise, env, folder, check):
    """Calls `check(holds, text)` for each."""
    program = pathlib.Path(folder) / "companion"
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, FOLDER / "companion.c"], check=True)
    os.chmod(program, 0o755)
    for case, text in CASES.items():
        balancer = start(nodewise, env, program, case)
        out, _ = balancer.communicate(timeout=120)
        check(balancer.returncode == 0 and "right" in out, f"{text} ({balancer.returncode})")
    balancer = start(nodewise, env, program, "moves")
    balancer.stdout.readline()
    moved = balancer.stdout.readline()
    balancer.kill()
    out = balancer.stdout.read()
    balancer.wait()
    check("moved" in moved and "right" in out,
          f"killed −9: lifted where mremap took it, and the program's own policies stay ({moved + out!r})")
