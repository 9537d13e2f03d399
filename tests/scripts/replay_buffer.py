"""Reinforcement learning: batches sampled from a replay memory, two networks, a step only now and then."""
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(list(self.memory), batch_size)

    def __len__(self):
        return len(self.memory)


BATCH_SIZE = 12
GAMMA = 0.9
policy_net, target_net = nn.Linear(3, 2), nn.Linear(3, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3)
memory = ReplayMemory(200)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    states, actions = torch.cat(batch.state), torch.cat(batch.action)
    rewards, next_states = torch.cat(batch.reward), torch.cat(batch.next_state)
    values = policy_net(states).gather(1, actions)
    with torch.no_grad():
        expected = rewards + GAMMA * target_net(next_states).max(1).values
    loss = nn.functional.smooth_l1_loss(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for step in range(30):
    state = torch.randn(1, 3)
    memory.push(state, torch.randint(2, (1, 1)), state + 1, torch.randn(1))
    optimize_model()
