set -e
head -n 3000 in/text >a.txt
touch -d '2001-01-01 00:00:00 UTC' a.txt
TZ=UTC zip -q -X -9 packed.zip a.txt
TZ=UTC unzip -l packed.zip
mv a.txt b.txt
unzip -q packed.zip
cmp a.txt b.txt
rm b.txt
