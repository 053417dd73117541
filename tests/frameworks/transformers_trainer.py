# SPDX-License-Identifier: BSD-3-Clause
"""The Trainer of transformers, with a tiny model of random weights."""
import fake_cuda
import torch
from transformers import (GPT2Config, GPT2LMHeadModel, Trainer,
                          TrainingArguments)

from report import report

tokens = torch.arange(8)
model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=8, n_embd=8,
                                   n_layer=1, n_head=1))
args = TrainingArguments("trained", max_steps=1, report_to="none",
                         save_strategy="no", per_device_train_batch_size=1)
trainer = Trainer(model, args, train_dataset=[
    {"input_ids": tokens, "labels": tokens}] * 8)
trainer.train()
total = trainer.accelerator.reduce(torch.tensor(args.process_index), "sum")
torch.cuda.set_device(args.local_process_index)
report(args.process_index, args.world_size, total, fake_cuda.current)
