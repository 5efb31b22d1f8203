set -e
mkdir from
for n in 1 2 3 4 5 6 7 8; do head -n $((n * 100)) in/text >from/text-$n; done
tar --sort=name --owner=0 --group=0 --mtime='2001-01-01 UTC' --mode=644 -czf packed.tar.gz -C from .
mkdir to
tar -xzf packed.tar.gz -C to
cmp from/text-8 to/text-8
tar -tvf packed.tar.gz | awk '{ print $3, $6 }'
