import torch
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset


def build_loaders(args):
    dataset_train = TensorDataset(torch.randn(64, 4), torch.randint(3, (64,)))
    dataset_valid = TensorDataset(torch.randn(32, 4), torch.randint(3, (32,)))
    data_loader_train = DataLoader(
        dataset_train, sampler=RandomSampler(dataset_train),
        batch_size=args.batch_size,
        num_workers=args.num_workers,
        drop_last=True,
    )
    data_loader_valid = DataLoader(dataset_valid, sampler=SequentialSampler(dataset_valid), batch_size=16)
    return data_loader_train, data_loader_valid
