memcached -u root -s "$PWD/s" -t 4 -m 16 &
server=$!
n=0
until [ -S s ] || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
{
    awk 'BEGIN { for (i = 0; i < 500; i++) printf "set key%d 0 0 5\r\n%05d\r\n", i, i; printf "get key77\r\nquit\r\n" }'
} | socat -t 30 - UNIX-CONNECT:s | sort | uniq -c
kill -TERM $server
wait $server
echo "server $?"
rm -f s
