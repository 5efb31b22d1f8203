set -e
mkdir from
for n in 1 2 3; do head -n $((n * 100)) in/text >from/text-$n; done
find from -type f | sort | cpio -o --quiet --reproducible --ignore-devno --renumber-inodes >packed
rm -rf from
cpio -i --quiet -d <packed
cksum from/*
rm packed
