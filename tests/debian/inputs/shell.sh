# Pipes, subshells, here-documents, traps, job control, arithmetic; for every Bourne shell.
trap 'echo bye' EXIT
trap 'echo caught' USR1
count=0
while [ $count -lt 300 ]; do count=$((count + 1)); sum=$((${sum:-0} + count * count)); done
echo "sum $sum"
twice() { echo "$1$1"; }
echo "$(twice "$(twice a)")" | tr a b
cat <<END | sort | uniq -c | sed 's/^ *//'
x $count
y
y
END
(sleep 0.05; echo late >late.txt; exit 3) &
child=$!
kill -USR1 $$
wait $child
echo "child $?"
for word in one two three; do printf '%s\n' "$word"; done | while read -r word; do echo "<$word>"; done
grep -c the in/text | cat
exec 3>three.txt
echo three >&3
exec 3>&-
case $(cat late.txt three.txt | wc -l) in *2) echo two lines ;; esac
echo to stderr >&2
exit 5
