%token NUMBER
%left '+' '-'
%left '*' '/'
%%
lines: | lines line ;
line: '\n' | sum '\n' ;
sum: NUMBER | sum '+' sum | sum '-' sum | sum '*' sum | sum '/' sum | '(' sum ')' ;
%%
