set -e
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='100000000 +0000' GIT_COMMITTER_DATE='100000000 +0000'
export GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me GIT_COMMITTER_NAME=me GIT_COMMITTER_EMAIL=me
git -c init.defaultBranch=main init -q work
cd work
for n in 1 2 3 4 5 6 7 8; do head -n $((n * 50)) ../in/text >text-$n; done
git add .
git commit -q -m first
sed -i 's/the/THE/' text-3
git commit -q -a -m second
git log --format='%H %s' --stat
git -c pack.threads=4 repack -q -a -d
git fsck --no-progress
git grep -c THE
cd ..
rm -rf work
