redis-server --port 0 --unixsocket s --daemonize no --save '' --io-threads 2 --dir . >log 2>&1 &
server=$!
n=0
until redis-cli -s s ping >/dev/null 2>&1 || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
awk 'BEGIN { for (i = 0; i < 3000; i++) print "SET key:" i " " i * i; print "GET key:77"; print "DBSIZE" }' | redis-cli -s s | sort | uniq -c
redis-cli -s s EVAL 'local s = 0; for i = 1, 1000 do s = s + i end; return s' 0
redis-cli -s s save
redis-cli -s s shutdown nosave
wait $server
echo "server $?"
rm -f log dump.rdb
