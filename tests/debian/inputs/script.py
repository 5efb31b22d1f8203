import hashlib, mmap, os, re, signal, subprocess, sys, threading
from multiprocessing import get_context
from collections import Counter

def work(n):
    return sum(i * n for i in range(20000))

def main():
    text = open("in/text").read()
    print(Counter(re.findall(r"\w+", text)).most_common(3))
    results = [0] * 4
    threads = [threading.Thread(target=lambda t: results.__setitem__(t, work(t)), args=(t,)) for t in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(results)
    with get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(4)))
    done = subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True)
    print(done.stdout, done.returncode)
    memory = mmap.mmap(-1, 1 << 20)
    memory[:5] = b"hello"
    print(memory[:5], hashlib.sha256(text.encode()).hexdigest())
    signal.signal(signal.SIGALRM, lambda *_: print("alarm", flush=True))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    signal.pause()
    with open("out.bin", "wb") as file:
        file.write(bytes(range(256)) * 100)
    sys.stderr.write("to stderr\n")
    os._exit(6)

if __name__ == "__main__":
    main()
