set I := 1..30;
param w{i in I} := (i * 7) mod 13 + 1;
param v{i in I} := (i * 5) mod 17 + 1;
var x{I} binary;
maximize value: sum{i in I} v[i] * x[i];
s.t. room: sum{i in I} w[i] * x[i] <= 60;
solve;
printf "%d\n", value;
end;
