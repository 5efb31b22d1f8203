# A server of one process; it declines to be root.
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
as() { setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }
chmod 777 .
as initdb -D data -U me --no-sync --no-locale -E UTF8 --auth trust >log 2>&1
status=$?; echo "made $status"; [ $status = 0 ] || tail -n 5 log
as postgres --single -D data -j postgres <<'END' 2>/dev/null | grep -v "^PostgreSQL\|^backend" | tr -d "\t"
create table t as select i, i * i as square from generate_series(1, 5000) i;

select sum(square), count(*) from t where i % 7 = 3;

END
rm -rf data log
