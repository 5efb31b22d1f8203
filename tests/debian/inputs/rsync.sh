set -e
mkdir from
for n in 1 2 3 4; do head -n $((n * 500)) in/text >from/text-$n; done
rsync -r --checksum from/ to/
echo more >>from/text-2
rsync -rvc --no-human-readable from/ to/ | grep text
cmp from/text-2 to/text-2
rm -rf from
