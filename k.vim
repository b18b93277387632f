call cursor(1,1)
exe "normal d).."
let p=getpos(".")
call append("$", "@".p[1].",".p[2])
wq! o.txt
