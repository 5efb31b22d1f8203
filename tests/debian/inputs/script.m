a = reshape(mod((1:40000) * 7, 101), 200, 200) + 200 * eye(200);
b = a * a';
printf("%d\n", sum(b(:)));
printf("%.6f\n", norm(a \ ones(200, 1)));
printf("%.6f\n", max(real(eig(a(1:50, 1:50)))));
exit(3)
