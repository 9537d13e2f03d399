"""Hugging Face: the trainer owns the loop and makes the loader; a library's encoder within the user's module."""

import torch
from torch import nn
from transformers import BertConfig, BertModel, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return {"input_ids": torch.randint(100, (12,)), "labels": index % 2}  # DATA


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
        )
        self.encoder = BertModel(config)
        self.head = nn.Linear(32, 2)

    def forward(self, input_ids, labels):
        states = self.encoder(input_ids=input_ids).last_hidden_state  # MODEL
        logits = self.head(states[:, 0])  # FIRST
        return {"loss": nn.functional.cross_entropy(logits, labels)}  # LOSS


def main():
    arguments = TrainingArguments(
        output_dir="checkpoints",
        per_device_train_batch_size=6,
        gradient_accumulation_steps=2,
        num_train_epochs=20,
        report_to=[],
        use_cpu=True,
    )
    trainer = Trainer(model=Classifier(), args=arguments, train_dataset=Sentences())
    trainer.train()  # LIBRARY


if __name__ == "__main__":
    main()
