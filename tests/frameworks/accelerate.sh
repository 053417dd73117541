# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh

world even python3 accelerate_loop.py
world uneven python3 transformers_trainer.py
