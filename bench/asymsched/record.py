"""`python bench/asymsched/record.py SIZE`: records all programs of a size, those that are not there yet."""

import sys

from recordings import Recordings

if __name__ == "__main__":
    print(len(Recordings(sys.argv[1], keep=True).all()), "recordings")
