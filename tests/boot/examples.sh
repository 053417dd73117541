# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The examples, built as they say against what was installed.

examples=$top/contrib/examples
include=$(dirname "$(find "$dir/root" -name ddp_nccl.h)")
library=$(dirname "$(find "$dir/root" -name libddp.so)")

# built_by NAME COMPILER-AND-OPTIONS: an example, with the installed libddp
built_by()
{
	built=$1
	shift
	# shellcheck disable=SC2086 # a list of words
	check "$built.c compiles with $1" "$@" -I"$include" -o "$built" \
		"$examples/$built.c" -L"$library" -lddp ${libs-}
}

built_by hello_hosts cc -Wall -Wextra -Werror -Wl,-rpath,"$library"
check 'alone' sh -c './hello_hosts | grep "^rank 0 of 1: node 0 of 1, local rank 0, process [0-9]* on '"$(uname -n)"'$"'
if test -n "$why"; then
	skip 'hello_hosts on two nodes' "$why"
else
	cluster --nodes 2 --gpus 0 --cpus 3
	call login srun --mpi=pmix -N2 -n5 "$scratch/hello_hosts"
	sed 's/process [0-9]* on //' out >said
	cat >wanted <<-END
	rank 0 of 5: node 0 of 2, local rank 0, n1
	rank 1 of 5: node 0 of 2, local rank 1, n1
	rank 2 of 5: node 0 of 2, local rank 2, n1
	rank 3 of 5: node 1 of 2, local rank 0, n2
	rank 4 of 5: node 1 of 2, local rank 1, n2
	END
	check 'hello_hosts on two nodes' diff wanted said
fi

check 'hello_allreduce.c has fewer than 60 lines' \
	test "$(wc -l <"$examples/hello_allreduce.c")" -lt 60
config()
{
	sed -n "s/^$1 = //p" "$build/config.mak"
}
if test "$(config HAVE_CUDA)$(config HAVE_NCCL)" = yesyes; then
	libs="$(config NCCL_LIBS) $(config CUDA_LIBS)"
	# shellcheck disable=SC2046 # lists of words
	built_by hello_allreduce cc -Wall -Wextra -Werror \
		$(config CUDA_CFLAGS) $(config NCCL_CFLAGS)
	libs=-lnccl
	built_by hello_allreduce "$(config NVCC)"
else
	skip 'hello_allreduce.c compiles' \
		'no GPU, and configure found not both of CUDA and NCCL'
fi
