import torch
import torch.utils.data as data


def loader_for(split, size):
    return data.DataLoader(torch.randn(50, 2), size, shuffle=split == "train")
