# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh

world itself python3 submitit_job.py
world itself python3 submitit_job.py --export
