set terminal dumb 70 20
set samples 500
plot sin(x) / x
set output 'surface.txt'
splot x * y
