"""A GAN at the top of a module: two optimizers, three backward passes an iteration, an option in camel case."""
from __future__ import print_function

import argparse

import torch
import torch.nn as nn
import torch.optim as optim
import torch.utils.data

parser = argparse.ArgumentParser()
parser.add_argument('--workers', type=int, default=0)
parser.add_argument('--batchSize', type=int, default=8, help='input batch size')
parser.add_argument('--nz', type=int, default=16, help='size of the latent vector')
parser.add_argument('--niter', type=int, default=1)
opt = parser.parse_args()

dataset = torch.utils.data.TensorDataset(torch.randn(64, 3, 8, 8))
dataloader = torch.utils.data.DataLoader(dataset, batch_size=opt.batchSize,
                                         shuffle=True, num_workers=int(opt.workers))
nz = int(opt.nz)
netG = nn.Sequential(nn.ConvTranspose2d(nz, 3, 8), nn.Tanh())
netD = nn.Sequential(nn.Conv2d(3, 1, 8), nn.Flatten(0), nn.Sigmoid())
criterion = nn.BCELoss()
fixed_noise = torch.randn(64, nz, 1, 1)
optimizerD = optim.Adam(netD.parameters(), lr=2e-4)
optimizerG = optim.Adam(netG.parameters(), lr=2e-4)

for epoch in range(opt.niter):
    for i, data in enumerate(dataloader, 0):
        netD.zero_grad()
        real = data[0]
        batch_size = real.size(0)
        label = torch.full((batch_size,), 1.0)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        noise = torch.randn(batch_size, nz, 1, 1)
        fake = netG(noise)
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.step()

        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
    print('[%d/%d] %.3f %.3f' % (epoch, opt.niter, errD_real.item(), errG.item()))
