# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# One process without PMIx; what is installed; other launchers than Slurm.

program job || exit 1

# said WANTED NAME: the lines of the last call, in order, without their seconds, and
# nothing on stderr
said()
{
	sed 's/ after [0-9.]*:/:/' out | sort >sorted
	printf '%s\n' "$1" >wanted
	diff wanted sorted >why && ! test -s err
	result $? "$2"
}

call ./job create show gather many=50 barrier destroy pmix single show
said "0 1 0 1 0 1 - - - $(uname -n)/0/0
0 1 0 1 0 1 - - - $(uname -n)/0/0
0 pmix: ARGUMENT: no launcher offers PMIx to this process: start it \
with srun --mpi=pmix or srun --ddp" \
	'one process is a job of its own, but not if PMIx was asked for'
call env SLURM_STEP_NUM_TASKS=4 ./job create single show
said "0 1 0 1 0 1 - - - $(uname -n)/0/0
0 create: ARGUMENT: this is one of 4 tasks (SLURM_STEP_NUM_TASKS), \
which cannot find each other without PMIx: start it with srun --mpi=pmix or \
srun --ddp" 'one of several tasks is not one process'
call ./job single create single=5 destroy create show
said "0 1 0 1 0 1 - - - $(uname -n)/0/0
0 create: ARGUMENT: this process has a job already: destroy that one \
first
0 single=5: ARGUMENT: this process has a job already: destroy that \
one first" 'there is one job at a time'
call env PMIX_NAMESPACE=x PMIX_RANK=0 ./job create=5000
# PMIx 5 has another word for it.
sed -i 's/PMIX_ERR_UNREACH$/UNREACHABLE/' out
said "0 create=5000: PMIX: cannot join the job that PMIX_NAMESPACE names \
(unset it if it is left from an earlier launch): PMIx says UNREACHABLE" 'a PMIx that is not there is refused'
call ./job create abort=7
equal 'ddp_abort of one process: its line and its code' \
	"7 job: rank 0 on $(uname -n): the world has ended" \
	"$status $(cat out err)"
call ./job abort=256
equal 'ddp_abort without a job' '1 job: the world has ended' \
	"$status $(cat out err)"
call env JOB_WORLD="$(printf 'w\303\266rld\nsrun: \033[31merror')" ./job abort=3
equal 'ddp_abort prints one printable line' \
	'3 job: the wörld srun: ?[31merror has ended' \
	"$status $(cat out err)"

if program threads >threads.out 2>&1; then
	check 'threads of one process, under the thread sanitizer' \
		env TSAN_OPTIONS=halt_on_error=1 ./threads
else
	skip 'threads under the thread sanitizer' 'it does not link here'
fi

# As a user would: by what is installed alone.
lib=$(dirname "$(find "$dir/root" -name libddp.so.0)")
include=$(dirname "$(find "$dir/root" -name ddp.h)")
cat >user.c <<'END'
#include <ddp.h>
#include <stdio.h>

int main(void)
{
	struct ddp_error error;
	struct ddp_job *job = ddp_job_create(NULL, &error);

	if (job == NULL)
		ddp_abort(NULL, 1, "%s", error.text);
	printf("rank %u of %u, libddp %s\n", ddp_job_rank(job),
	       ddp_job_size(job), ddp_version());
	ddp_job_destroy(job);
	return 0;
}
END
# shellcheck disable=SC2016 # for the inner shell
installed()
{
	PKG_CONFIG_PATH=$lib/pkgconfig sh -ec '
		flags=$(pkg-config --define-variable=libdir="$1" \
			--define-variable=includedir="$2" --cflags --libs libddp)
		pkg-config --modversion libddp
		for std in c99 c11 c17; do
			cc -std=$std -Wall -Wextra -pedantic -Werror user.c \
				-o user $flags
		done
		LD_LIBRARY_PATH=$1 ./user' sh "$lib" "$include"
}
call installed
version=$("$top/configure" --version | sed 's/.* //')
equal 'pkg-config builds a program with what is installed' \
	"0 $version rank 0 of 1, libddp $version" \
	"$status $(paste -sd' ' out)$(cat err)"
sed -n 's/.*[ *]\(ddp_[a-z_]*\)(.*/\1/p' "$include"/ddp.h \
	"$include"/ddp_nccl.h | sort -u >declared
nm -D --defined-only "$lib/libddp.so.0" | sed -n 's/.* T \([a-z_]*\).*/\1/p' |
	sort >exported
check 'the library shows the functions of its headers, and no others' \
	diff declared exported
equal 'the library is libddp.so.0, and links PMIx and libc alone' \
	'[libc.so [libpmix.so libddp.so.0' \
	"$(readelf -d "$lib/libddp.so.0" | sed -n \
		's/.*(NEEDED).*\(\[lib[a-z]*.so\).*/\1/p' | sort |
		paste -sd' ') $(readelf -d "$lib/libddp.so.0" |
		sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
equal 'libddp.so is a link to it' libddp.so.0 "$(readlink "$lib/libddp.so")"
if command -v c++ >/dev/null; then
	check 'ddp.h is C++, too' c++ -Wall -Wextra -Werror -fsyntax-only \
		-I"$include" -include ddp.h -x c++ /dev/null
else
	skip 'ddp.h is C++, too' 'no c++'
fi

# Open MPI's own launcher has PMIx, but no map of the ranks.
if command -v mpirun >/dev/null; then
	call timeout -k 1 60 mpirun --allow-run-as-root --oversubscribe -n 3 \
		./job create=9000 show gather many=20 threads=5 destroy create \
		gather destroy
	h=$(uname -n)
	said "0 3 0 3 0 1 - - - $h/0/0 $h/0/1 $h/0/2
1 3 1 3 0 1 - - - $h/0/0 $h/0/1 $h/0/2
2 3 2 3 0 1 - - - $h/0/0 $h/0/1 $h/0/2" "mpirun's PMIx serves as well"
	call timeout -k 1 60 mpirun --allow-run-as-root --oversubscribe -n 3 \
		./job create=9000 barrier @1:abort=7 barrier
	# mpirun 4.1 itself now and then does not notice that all have ended.
	check 'ddp_abort under mpirun: its line' grep -q \
		"^job: rank 1 on $h: the world has ended\$" err
	call timeout -k 1 60 mpirun --allow-run-as-root --oversubscribe -n 3 \
		./job create=2000 barrier !2:barrier @2:sleep=6000
	check 'a rank that does not come is named under mpirun' \
		grep -q "^0 barrier: TIMEOUT .* for rank 2 on $h" out
	# PMIx itself waits 2 s for the launcher when a rank leaves. Of two that
	# leave, one could have its answer just before the other stops it.
	call timeout -k 1 60 mpirun --allow-run-as-root --oversubscribe -n 2 \
		./job create=9000 barrier @0:stop_launcher=3000 @1:sleep=4000
	equal 'ranks leave no launcher that has not answered' 0 \
		"$status$(grep 'has left' err)"
else
	skip "mpirun's PMIx" 'no mpirun'
fi
