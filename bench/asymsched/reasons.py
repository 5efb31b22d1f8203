"""Of rows that do not hold, what a run has tested about why; figures are of the fast size. The runs are those of the rows' ranges
unless another is named."""

REASONS = {
    "S1": "At core factor 1 (range) times are off by 1.9 % in the median and 8.1 % at most, latencies by 4.3 % and 26.7 %: with the slower "
          "cores of the default the model computes for longer and waits less for the link than machine A did.",
    "S2": "The bandwidths of machine-a's routes alone correlate 0.73 in size with hops over the 56 pairs (`topo`), so times that follow "
          "bandwidth do too. Over the 16 pairs of Table 1 the printed times correlate 0.34.",
    "S3": "At core factor 1 (range) it holds. By default 1-4 and 7-0 take 205 and 207 s, where the slowest pair of one hop takes 203.",
    "S13": "At core factor 1 (range) it holds.",
}
