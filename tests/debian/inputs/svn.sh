set -e
export HOME=$PWD LC_ALL=C
svnadmin create repository
svn -q mkdir -m first "file://$PWD/repository/trunk"
svn -q co "file://$PWD/repository/trunk" work
head -n 200 in/text >work/text
svn -q add work/text
svn -q ci -m second work
sed -i 's/the/THE/' work/text
svn diff work/text | cksum
svn -q up work
svn status work
rm -rf repository work .subversion
