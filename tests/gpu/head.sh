# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run
# The head of the report: what ran, and on what.

# head_build: what configure found, and what nvcc compiles for
head_build()
{
	printf '# configure:'
	for name in CUDA CUBLASLT CUDNN NCCL PMIX MPI; do
		printf ' %s %s' $name "$(config HAVE_$name | sed 's/^$/no/')"
	done
	printf '; %s\n' "nvcc $(config NVCCFLAGS)"
}

# head_gpus: each GPU and the versions of the libraries, by a program; without
# it the driver at least
head_gpus()
{
	if test "$(config HAVE_CUDA)$(config HAVE_CUBLASLT)$(
		config HAVE_NCCL)" = yesyesyes &&
		made obj/tests/gpu/versions
	then
		find_libraries obj/tests/gpu/versions >/dev/null
		timeout -k 5 60 "$build/obj/tests/gpu/versions" |
			sed 's/^/# /'
	fi
	if test -r /proc/driver/nvidia/version; then
		sed -n 's/^NVRM version: */# driver: /p' \
			/proc/driver/nvidia/version
	elif command -v nvidia-smi >/dev/null; then
		nvidia-smi --query-gpu=driver_version --format=csv,noheader |
			sed 's/^/# driver: /;q'
	else
		echo '# driver: none is known here'
	fi
}

head_of_report()
{
	commit=$(git -C "$top" describe --always --dirty 2>/dev/null)
	echo "# $("$top/configure" --version), commit ${commit:-unknown}," \
		"$(date -u +%Y-%m-%dT%H:%MZ)"
	echo "# $(uname -sr), $(nproc) CPUs:$(sed -n \
		's/^model name[^:]*://p' /proc/cpuinfo | head -n 1)"
	head_build
	head_gpus
}
