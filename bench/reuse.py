"""Which recordings `--reuse` of a reproduction keeps."""

import json


def kept(profile):
    """The manifest of a recording that is there and whose program ended by itself, with success; else None. A recording that was
    interrupted is a profile like others, of what ran until then."""
    file = profile / "manifest.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found if found.get("exit_status") == 0 else None
