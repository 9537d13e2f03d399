"""Batches larger than what fits are accumulated, as accelerate's examples do."""
import torch
from torch.utils.data import DataLoader

MAX_GPU_BATCH_SIZE = 16
EVAL_BATCH_SIZE = 32


def get_dataloaders(batch_size: int = 16):
    train = DataLoader(torch.randn(96, 2), shuffle=True, batch_size=batch_size, drop_last=True)
    evaluation = DataLoader(torch.randn(96, 2), batch_size=EVAL_BATCH_SIZE)
    return train, evaluation


def training_function(config):
    batch_size = int(config["batch_size"])
    gradient_accumulation_steps = 1
    if batch_size > MAX_GPU_BATCH_SIZE:
        gradient_accumulation_steps = batch_size // MAX_GPU_BATCH_SIZE
        batch_size = MAX_GPU_BATCH_SIZE
    train_dataloader, eval_dataloader = get_dataloaders(batch_size)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    for step, batch in enumerate(train_dataloader):
        loss = model(batch).pow(2).mean() / gradient_accumulation_steps
        loss.backward()
        if step % gradient_accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    for batch in eval_dataloader:
        with torch.no_grad():
            model(batch)


def main():
    config = {"lr": 2e-3, "num_epochs": 1, "seed": 42, "batch_size": 12}
    training_function(config)


if __name__ == "__main__":
    main()
