set -e
cp in/text text
touch -d '2001-01-01 00:00:00 UTC' text
7z a -bd -bso0 -mmt=4 packed.7z text
7z l -bd -slt packed.7z | grep -E '^(Path|Size|CRC)'
mv text old
7z x -bd -bso0 packed.7z
cmp text old
rm old text
