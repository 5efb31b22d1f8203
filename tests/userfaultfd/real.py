"""Programs that were not written for this test, sampled by userfaultfd for a while: what they keep in memory is right
afterwards. Redis, which forks to save; node, whose collector moves and frees; numpy, which maps and unmaps."""

import pathlib
import shutil
import socket
import subprocess
import tempfile

from commands import NODEWISE, run, started, until

SECONDS = 60
# Both keep sums of what they wrote, and check them all the time; their last line says that they were right.
NODE = """
const end = Date.now() + %d * 1000, kept = new Map();
console.log('ready');
let n = 0, wrong = 0;
while (Date.now() < end) {
  for (let i = 0; i < 2000; i++, n++) {
    const a = new Array(40).fill(n);
    kept.set(n %% 50000, { n, a, text: 'v' + n, big: n %% 997 ? null : new Float64Array(30000).fill(n) });
  }
  for (let i = 0; i < 2000; i++) {
    const one = kept.get((n * 7919 + i * 31) %% 50000);
    if (one && (one.text !== 'v' + one.n || one.a.some(x => x !== one.n) || (one.big && one.big.some(x => x !== one.n)))) wrong++;
  }
}
console.log(wrong ? 'wrong' : 'right');
"""
NUMPY = """
import time, numpy
print('ready', flush=True)
end, wrong, kept, n = time.time() + %d, 0, {}, 0
while time.time() < end:
    n += 1
    kept[n %% 60] = (n, numpy.full(200_000 + n * 7919 %% 300_000, n))
    value, array = kept.get(n * 31 %% 60, kept[n %% 60])
    wrong += not (array == value).all()
print('wrong' if wrong else 'right')
"""


def sampled(check, name, process, folder):
    done = run(NODEWISE, "record", "--via", "userfaultfd", "--force", "-o", folder / name, "--pid", process.pid,
               "--duration", f"{SECONDS}s", "--observe-budget", "20%", timeout=4 * SECONDS)
    check(done.returncode == 0 and "samples of pages by" in done.stderr, f"{name}: sampled for {SECONDS} s {done.stderr[-300:]}")


def keeps_sums(check, name, folder, *command):
    with started(*command) as process:
        sampled(check, name, process, folder)
        said = process.communicate(timeout=SECONDS)[0].split()
    check(process.returncode == 0 and said[-1:] == ["right"], f"{name}: status {process.returncode}, {said[-1:]}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def redis(check, folder):
    port = free_port()
    server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
    helpers = [server]
    try:
        serves(check, folder, server, port, helpers)
    finally:
        for process in reversed(helpers):
            process.kill()
            process.wait()


def serves(check, folder, server, port, helpers):
    """What it was given before is what it has after it was sampled under load, saving all the time. `helpers`: what is to be ended."""
    ask, keys = ["redis-cli", "-p", port], 50_000
    check(until(lambda: run(*ask, "ping").stdout == "PONG\n"), "redis: it answers")
    lines = "".join(f"SET own:{i} value-{i}-{'x' * (i % 300)}\n" for i in range(keys))
    subprocess.run([str(word) for word in [*ask, "--pipe"]], input=lines, text=True, check=True, stdout=subprocess.DEVNULL, timeout=60)
    # Its tests come one after the other, again and again.
    load = ["redis-benchmark", "-p", str(port), "-l", "-n", "20000", "-r", "100000", "-t", "set,get,lpush,lpop,hset", "-d", "200", "-q"]
    saves = ["sh", "-c", f"while sleep 5; do redis-cli -p {port} bgsave; done"]
    helpers += [subprocess.Popen(words, stdout=subprocess.DEVNULL) for words in (load, saves)]
    sampled(check, "redis", server, folder)
    while len(helpers) > 1:
        helper = helpers.pop()
        helper.kill()
        helper.wait()
    found = run(*ask, "--raw", "mget", *[f"own:{i}" for i in range(keys)], timeout=60).stdout.splitlines()
    wrong = sum(value != f"value-{i}-{'x' * (i % 300)}" for i, value in enumerate(found))
    check(len(found) == keys and not wrong, f"redis: {keys} values are what they were, {wrong} of {len(found)} wrong")
    run(*ask, "shutdown", "nosave", timeout=60)
    check(server.wait(30) == 0, f"redis: it ends as usual: {server.returncode}")


def programs(check):
    """Each for a minute, beside a busy loop."""
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        folder = pathlib.Path(name)
        try:
            if shutil.which("redis-server"):
                redis(check, folder)
            else:
                check.skip("redis under userfaultfd: apt install redis-server")
            keeps_sums(check, "node", folder, "node", "-e", NODE % (SECONDS + 10))
            keeps_sums(check, "numpy", folder, "/usr/bin/python3", "-c", NUMPY % (SECONDS + 10))
        finally:
            busy.kill()
