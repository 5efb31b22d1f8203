mkdir logs html
head -n 1000 in/text >html/text
cat >nginx.conf <<END
daemon on; master_process on; worker_processes 2; user root; pid $PWD/nginx.pid; error_log $PWD/logs/error.log;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $PWD/a; proxy_temp_path $PWD/b; fastcgi_temp_path $PWD/c;
  uwsgi_temp_path $PWD/d; scgi_temp_path $PWD/e; server { listen unix:$PWD/s; root $PWD/html; } }
END
nginx -p "$PWD" -e "$PWD/logs/error.log" -c "$PWD/nginx.conf"
echo "started $?"
for n in 1 2 3; do curl -s --unix-socket s http://host/text | cksum; done
curl -s -o /dev/null -w '%{http_code}\n' --unix-socket s http://host/absent
nginx -p "$PWD" -e "$PWD/logs/error.log" -c "$PWD/nginx.conf" -s quit
n=0
while [ -e nginx.pid ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done
[ ! -e nginx.pid ] && echo stopped
rm -rf logs html nginx.conf s a b c d e
