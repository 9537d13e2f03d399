"""LBFGS with a closure, on all sequences at once: several backward passes a step, no batch size."""
import torch
import torch.nn as nn

torch.manual_seed(0)
waves = torch.sin(torch.arange(0, 20).float()[None, :] / 4 + torch.rand(7, 1))
model = nn.GRU(1, 6, batch_first=True)
head = nn.Linear(6, 1)
optimizer = torch.optim.LBFGS([*model.parameters(), *head.parameters()], lr=0.5, max_iter=3)

for step in range(3):
    def closure():
        optimizer.zero_grad()
        out = head(model(waves[:, :-1, None])[0])
        loss = nn.functional.mse_loss(out.squeeze(-1), waves[:, 1:])
        loss.backward()
        return loss

    print(step, optimizer.step(closure).item())
