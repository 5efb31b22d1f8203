# Its figures are times; that it ends well is not.
sysbench cpu --threads=4 --events=200 --time=0 run | grep 'total number of events'
sysbench memory --threads=2 --memory-total-size=16M run | grep -c 'MiB transferred'
sysbench threads --threads=8 --events=200 --time=0 run | grep 'total number of events'
