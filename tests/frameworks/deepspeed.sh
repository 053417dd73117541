# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh

world hostfile python3 deepspeed_engine.py
