#!/usr/bin/env python3
"""Documentation of three words or fewer, which says no more than the name: a line for each. Help texts of the command line,
which end without a full stop, are left out."""

import pathlib
import re
import subprocess


def comments(lines):
    """Each documentation comment: its first line's number and its text."""
    number = 0
    while number < len(lines):
        start, kind = number, re.match(r"\s*(//[/!])(?!/)", lines[number])
        text = []
        while kind and number < len(lines) and lines[number].strip().startswith(kind[1]):
            text.append(lines[number].strip()[3:])
            number += 1
        if kind:
            yield start + 1, " ".join(text).strip()
        else:
            number += 1


def main():
    for file in subprocess.run(["git", "ls-files", "*.rs"], check=True, capture_output=True, text=True).stdout.split():
        for number, text in comments(pathlib.Path(file).read_text(encoding="utf-8").split("\n")):
            is_help = file.startswith("crates/cli/src/commands") and not text.endswith(".")
            if len(text.split()) <= 3 and not is_help:
                print(f"{file}:{number}: {text}")


if __name__ == "__main__":
    main()
