socat -b 4096 UNIX-LISTEN:s,fork EXEC:'tr a-z A-Z' &
server=$!
n=0
until [ -S s ] || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
for n in 1 2 3; do head -n $((n * 20)) in/text | socat -t 30 - UNIX-CONNECT:s | cksum; done
kill $server
wait $server
echo "server $?"
rm -f s
