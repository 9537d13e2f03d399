"""The loader under an alias, the batch size by its position, hexadecimal, in a file with tabs and a form feed."""
import torch
from torch.utils.data import DataLoader as Loader, TensorDataset

xs, ys = torch.randn(128, 4), torch.randn(128, 1)


def run():
	model = torch.nn.Linear(4, 1)
	optimizer = torch.optim.SGD(model.parameters(), 0.01)
	banner = "😀 training 😀"; loader = Loader(TensorDataset(xs, ys), 0x10, True)	# hex, after astral characters
	for x, y in loader:
		optimizer.zero_grad()
		torch.nn.functional.mse_loss(model(x), y).backward()
		optimizer.step()
	print(banner.encode("ascii", "ignore"))

run()
