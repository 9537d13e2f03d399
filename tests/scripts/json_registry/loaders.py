import torch
from torch.utils.data import DataLoader, TensorDataset


class BaseDataLoader(DataLoader):
    def __init__(self, dataset, batch_size, shuffle, validation_split, num_workers=0):
        self.validation_split = validation_split
        self.init_kwargs = {
            "dataset": dataset,
            "batch_size": batch_size,
            "shuffle": shuffle,
            "num_workers": num_workers,
        }
        super().__init__(**self.init_kwargs)

    def split_validation(self):
        return DataLoader(**self.init_kwargs)


class NumbersDataLoader(BaseDataLoader):
    def __init__(self, size, batch_size, shuffle=True, validation_split=0.0):
        data = TensorDataset(torch.randn(size, 3), torch.randn(size, 1))
        super().__init__(data, batch_size, shuffle, validation_split)
