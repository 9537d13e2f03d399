"""A configuration object of the project's own, filled by class methods and overridden from the command line."""
import sys

from library.trainer import Trainer
from library.utils import CfgNode as CN

import torch


class Numbers(torch.utils.data.Dataset):
    @staticmethod
    def get_default_config():
        C = CN()
        C.length = 200
        return C

    def __init__(self, config):
        self.config = config

    def __len__(self):
        return self.config.length

    def __getitem__(self, i):
        return torch.full((4,), float(i)), torch.tensor([float(i)])


def get_config():
    C = CN()
    C.data = Numbers.get_default_config()
    C.trainer = Trainer.get_default_config()
    C.trainer.learning_rate = 1e-6
    return C


if __name__ == "__main__":
    config = get_config()
    config.merge_from_args(sys.argv[1:])
    trainer = Trainer(config.trainer, torch.nn.Linear(4, 1), Numbers(config.data))
    trainer.set_callback("on_batch_end", lambda t: print(t.iter_num))
    trainer.run()
