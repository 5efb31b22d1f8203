"""The hundred programs: their list, which of them are chosen, and the inputs they read."""

import dataclasses
import hashlib
import pathlib
import random
import shlex
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SHORT = 5  # every fifth is in the short run


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    packages: tuple
    command: tuple


def all_programs():
    lines = (HERE / "programs").read_text().splitlines()
    rows = [line.split(" | ", 2) for line in lines if line and not line.startswith("#")]
    programs = [Program(name, tuple(packages.split()), tuple(shlex.split(command))) for name, packages, command in rows]
    assert len(programs) == 100 == len({p.name for p in programs}), f"{len(programs)} programs"
    return programs


def short(programs):
    return programs[SHORT - 1::SHORT]


def missing_packages(programs):
    """Packages that are not installed, of all programs."""
    wanted = sorted({p for program in programs for p in program.packages})
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
                          capture_output=True, text=True, check=False)
    installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in wanted if package not in installed]


def install(packages):
    """For the long run, as root; what cannot be installed stays missing."""
    command = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", "install", "-y", "--no-install-recommends", *packages]
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})


def make_inputs(folder, programs):
    """Copies of `inputs`, texts and tables from a fixed seed, and what the programs need compiled."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (HERE / "inputs").iterdir():
        put(folder / file.name, file.read_bytes())
    draw = random.Random(1)
    words = ["".join(draw.choices("aeiorstnlhdcumthe", k=draw.randint(2, 9))) for _ in range(3000)] + ["the"] * 60
    put(folder / "text", "".join(" ".join(draw.choices(words, k=12)) + "\n" for _ in range(16_000)).encode())
    put(folder / "numbers", "".join(f"{draw.randrange(1 << 30)}\n" for _ in range(20_000)).encode())
    rows = [(draw.choice("abcdef"), draw.randrange(1000)) for _ in range(10_000)]
    put(folder / "table.csv", ("b,a\n" + "".join(f"{b},{a}\n" for b, a in rows)).encode())
    items = ",".join(f'{{"a": "{b}{a}", "b": [{a}, {a * 2}]}}' for b, a in rows[:3000])
    put(folder / "table.json", f"[{items}]".encode())
    put(folder / "tree.xml", ("<t>" + "".join(f'<{b} n="{a}"><x/>y</{b}>' for b, a in rows) + "</t>").encode())
    put(folder / "picture.ppm", b"P6 160 120 255\n" + draw.randbytes(160 * 120 * 3))
    targets = [word for program in programs for word in compiled(program)]
    done = subprocess.run(["make", "-s", "-C", HERE / "inputs", f"OUT={folder}", *[folder / t for t in targets]],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"inputs: {done.stderr}"


def compiled(program):
    made = {"in/small.o": "small.o", "in/other.o": "other.o", "Small": "Small.class"}
    own = ("openmp", "mpi", "musl", "go-program", "static", "forks", "dlopens", "closes", "signals", "spawns", "daemon")
    made |= {f"in/{name}": name for name in own}
    return [made[word] for word in program.command if word in made]


def put(path, content):
    """Left alone where it is the same already, so that what is made from it is not made anew."""
    if not path.exists() or hashlib.sha256(path.read_bytes()).digest() != hashlib.sha256(content).digest():
        path.write_bytes(content)
