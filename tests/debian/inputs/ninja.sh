ninja -j4 -f in/build.ninja
echo "made $?"
rm -f .ninja_log .ninja_deps
