create table t(i integer primary key, square integer, word text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, i * i, 'word ' || (i % 97) from n;
create index by_word on t(word);
select word, count(*), sum(square) from t group by word order by word limit 5;
select count(*) from t a join t b on a.i = b.i + 1 where a.word < b.word;
pragma integrity_check;
vacuum;
