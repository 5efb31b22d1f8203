"""The page in Debian's Chromium: what it shows is what `--json` says, in one file and served, by mouse and by keys, in
light and in dark; nothing in it asks the network or runs but its own script. Pictures are compared with those in
golden/, which somebody has looked at."""

import checks
import edges
import exports
import laboratory
import live
import nodewise
import ways
from browser import chromium
from views import agreement, pictures_of


def main():
    nodewise.clean()
    profiles = {kind: nodewise.synthetic(kind) for kind in ("solver", "moved", "hostile", "truncated", "page", "empty")}
    with chromium() as browser:
        for kind in ("solver", "moved"):
            address, _ = nodewise.in_a_file(profiles[kind])
            checks.section(agreement, browser, address, profiles[kind], f"{kind} in a file")
            checks.section(pictures_of, browser, address, kind)
            if kind == "moved":
                checks.section(exports.all_of_them, browser, address, profiles[kind])
        with nodewise.served(profiles["solver"], "--against", profiles["moved"]) as address:
            checks.section(agreement, browser, address, profiles["solver"], "solver served")
            checks.section(ways.keys, browser, address)
            checks.section(ways.themes, browser, address)
            checks.section(ways.links, browser, address)
            checks.section(exports.all_of_them, browser, address, profiles["solver"])
            checks.section(ways.compared, browser, address, profiles)
        checks.section(edges.all_of_them, browser, profiles)
        checks.section(live.rewritten, browser)
        checks.section(live.interrupted, browser)
        checks.section(live.recorded, browser)
        checks.section(laboratory.balanced, browser)
    checks.end()


if __name__ == "__main__":
    main()
