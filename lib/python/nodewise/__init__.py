"""NumPy arrays that lie where their threads are: libnodewise for Python.

    import nodewise

    a = nodewise.zeros((n, n), policy="cyclic rows 4")   # a NumPy array, without a copy
    nodewise.place(b, nodewise.bind("rows"))             # any NumPy array, at any time
    nodewise.histogram(a)                                # pages on each node

Wrong arguments are ValueError. Where placement cannot be had (one node, a container without permission)
nothing fails: `place` returns a `Result` that says what was not done, `empty` and `zeros` warn with
`PlacementWarning`.
"""

from ._library import PlacementWarning, Result, Status, version
from .arrays import (
    Copies,
    Distribution,
    Histogram,
    check_copies,
    copies,
    describe,
    empty,
    gather,
    histogram,
    map_file,
    migrate_columns,
    migrate_rows,
    nearest,
    page_nodes,
    place,
    replicate,
    scatter,
    zeros,
)
from .machine import (
    Statistics,
    bind_thread,
    bind_threads,
    cpu_node,
    cpus,
    get_threads,
    huge_page_bytes,
    migrate_thread,
    nodes,
    page_bytes,
    set_threads,
    statistics,
    thread_node,
)
from .policies import (
    Policy,
    bind,
    bind_all,
    block_cyclic,
    block_exclusive,
    blocks,
    cyclic,
    first_touch,
    node,
    prime,
    random,
    skew,
)

__version__ = version()
__all__ = sorted(name for name in dir() if name[0] != "_" and name not in ("arrays", "machine", "memory", "policies"))
