# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # see tests/train/tokens.sh
# contrib/tokens with the package tokenizers: test_bpe of tests/train.

# shellcheck source=tests/train/tokens.sh
. "$top/tests/train/tokens.sh"
python=python3
mkdir -p made
test_bpe
