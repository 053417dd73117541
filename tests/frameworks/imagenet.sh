# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034 # for world

options=--ddp-gpus=own
world even python3 imagenet_example.py
options='--ntasks-per-node=1 -c4'
world even python3 imagenet_example.py --multiprocessing-distributed
