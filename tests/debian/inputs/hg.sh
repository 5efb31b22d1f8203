set -e
export HOME=$PWD HGRCPATH=/dev/null LC_ALL=C
hg init work
cd work
head -n 200 ../in/text >text
hg add text
hg commit -u me -d '0 0' -m first
sed -i 's/the/THE/' text
hg diff --nodates | cksum
hg commit -u me -d '1 0' -m second
hg log -T '{rev} {node} {desc}\n'
hg verify -q
cd ..
rm -rf work .cache
