import json
from pathlib import Path


class ConfigParser:
    def __init__(self, config):
        self._config = config

    @classmethod
    def from_args(cls, args):
        args = args.parse_args()
        return cls(read_json(args.config))

    def init_obj(self, name, module, *args, **kwargs):
        module_name = self[name]["type"]
        module_args = dict(self[name]["args"])
        assert all(k not in module_args for k in kwargs)
        module_args.update(kwargs)
        return getattr(module, module_name)(*args, **module_args)

    def __getitem__(self, name):
        return self.config[name]

    @property
    def config(self):
        return self._config


def read_json(fname):
    fname = Path(fname)
    with fname.open("rt") as handle:
        return json.load(handle)
