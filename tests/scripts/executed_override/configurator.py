import sys
from ast import literal_eval

for arg in sys.argv[1:]:
    if "=" not in arg:
        exec(open(arg).read())
    else:
        key, val = arg.split("=")
        key = key[2:]
        if key not in globals():
            raise ValueError(f"unknown key: {key}")
        globals()[key] = literal_eval(val)
