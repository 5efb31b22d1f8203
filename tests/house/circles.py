#!/usr/bin/env python3
"""Modules of a crate that use each other in a circle: a line for each circle. What only tests use is left out. A module that calls
into its own submodule by name (`child::f()`) makes a circle only if something below uses functions or constants of it: types of
its ancestors it may use."""

import pathlib
import re
import subprocess

USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([\w:{},\s*]+);", re.MULTILINE)
INLINE = re.compile(r"\b((?:crate|super)(?:::\w+)+)")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod \w+ \{.*\n\}\n", re.DOTALL)


def paths(tree, before=()):
    """The paths of a use tree: `a::{b, c::d}` has a::b and a::c::d."""
    head, brace, body = tree.partition("{")
    names = (*before, *(n.split(" as ")[0].strip() for n in head.split("::") if n.strip()))
    if not brace:
        return [names] if names else []
    parts, depth = [""], 0
    for letter in body[:body.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [path for part in parts if part.strip() for path in paths(part, names)]


class Crate:
    """The modules of a crate by their path, and what each exports from others."""

    def __init__(self, root, files):
        self.modules, self.exports = {}, {}
        for file in files:
            names = pathlib.Path(file).relative_to(root).with_suffix("").parts
            text = TESTS.sub("", (pathlib.Path(file)).read_text(encoding="utf-8"))
            self.modules[() if names in (("lib",), ("main",)) else names] = re.sub(r"//[^\n]*", "", text)
        for module, text in self.modules.items():
            found = [(p[-1], self.absolute(module, p)) for public, tree in USE.findall(text) if public for p in paths(tree)]
            self.exports[module] = dict(found)

    def absolute(self, module, path):
        """A path from the crate's root; nothing for what lies in other crates."""
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return (*module, *path[1:])
        up = next((i for i, name in enumerate(path) if name != "super"), len(path))
        if up:
            return (*module[:len(module) - up], *path[up:])
        return (*module, *path) if (*module, path[0]) in self.modules else None

    def home(self, path, depth=0):
        """The module that defines what a path names, exports followed; none if that is another crate."""
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self.modules)
        module, rest = path[:length], path[length:]
        if not rest or rest[0] not in self.exports[module] or depth == 8:
            return module
        again = self.exports[module][rest[0]]
        return self.home((*again, *rest[1:]), depth + 1) if again else None

    def uses(self):
        """The modules that each module uses."""
        graph = {module: set() for module in self.modules}
        for module, text in self.modules.items():
            if module and re.search(r"^tests$|^properties$|_tests$", module[-1]):
                continue
            named = [p for public, tree in USE.findall(text) if not public for p in paths(tree)]
            named += [tuple(p.split("::")) for p in INLINE.findall(text)]
            found = [path for path in (self.absolute(module, path) for path in named) if path is not None]
            graph[module] = {self.home(path) for path in found} - {module, None}
            for depth, child in enumerate(module):
                ancestor = module[:depth]
                if re.search(rf"(?<!:)\b{child}::", self.modules.get(ancestor, "")) and any(
                    path and self.home(path) == ancestor and not re.match(r"[A-Z]\w*[a-z]", path[-1]) for path in found
                ):
                    graph[ancestor].add(module)
        return graph


def reached(graph, start):
    seen, left = set(), [start]
    while left:
        new = graph[left.pop()] - seen
        seen |= new
        left += new
    return seen


def main():
    tracked = subprocess.run(["git", "ls-files", "crates/*.rs"], check=True, capture_output=True, text=True).stdout.split()
    for root in sorted({file.split("/src/")[0] + "/src" for file in tracked if "/src/" in file}):
        graph = Crate(root, [file for file in tracked if file.startswith(f"{root}/")]).uses()
        beyond = {module: reached(graph, module) for module in graph}
        circles = {frozenset(m for m in beyond[module] if module in beyond[m]) for module in graph if module in beyond[module]}
        for circle in circles:
            print(f"{root}:", ", ".join(sorted("::".join(module) or "lib" for module in circle)))


if __name__ == "__main__":
    main()
