export TERM=screen HOME=$PWD LC_ALL=C.UTF-8
tmux -f /dev/null -S "$PWD/s" new-session -d -x 80 -y 24 'sh -c "echo inside >inside.txt; sleep 100"'
echo "started $?"
n=0
until [ -s inside.txt ] || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
tmux -S "$PWD/s" list-windows -F '#{window_width} #{window_height}'
server=$(tmux -S "$PWD/s" display-message -p '#{pid}')
tmux -S "$PWD/s" kill-server
n=0
while kill -0 "$server" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
cat inside.txt
rm -f s
