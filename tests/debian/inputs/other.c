int other(int a) { return a * 3 + 1; }
