from ast import literal_eval


class CfgNode:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def merge_from_args(self, args):
        for arg in args:
            key, val = arg.split("=")
            try:
                val = literal_eval(val)
            except ValueError:
                pass
            assert key[:2] == "--"
            keys = key[2:].split(".")
            obj = self
            for k in keys[:-1]:
                obj = getattr(obj, k)
            setattr(obj, keys[-1], val)
