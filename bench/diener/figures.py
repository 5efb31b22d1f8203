"""The paper's Figure 4, drawn from what nodewise reported."""

import plots

NAMES = ["0", "1", "2", "3", "4 and more"]


def pages_by_moves(file, programs, distributions):
    """The share of pages by number of moves."""
    def share(pages, moves):
        wanted = pages[moves:] if moves == len(NAMES) - 1 else pages[moves:moves + 1]
        return 100 * sum(wanted) / max(1, sum(pages))

    series = {f"{name} moves": [share(pages, moves) for pages in distributions] for moves, name in enumerate(NAMES)}
    plots.stacked(file, list(programs), series, "pages (%)")
