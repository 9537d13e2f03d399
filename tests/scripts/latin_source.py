# -*- coding: latin-1 -*-
"""Réglages dans un fichier qui n'est pas en UTF-8."""
import torch
from torch.utils.data import DataLoader

libellé = "déjà vu"; taille_lot = 8  # même après des caractères accentués
chargeur = DataLoader(torch.randn(40, 2), batch_size=taille_lot)
modèle = torch.nn.Linear(2, 1)
optimiseur = torch.optim.SGD(modèle.parameters(), 0.1)
for x in chargeur:
    optimiseur.zero_grad()
    modèle(x).mean().backward()
    optimiseur.step()
