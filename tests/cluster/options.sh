# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# How --ddp is given, inherited, replaced and undone.

cluster --nodes 2 --gpus 2 --cpus 8

printf '#!/bin/sh\n' >job.sh
for program in srun sbatch salloc; do
	call login $program --help
	grep -q -e '--ddp=\[' out && grep -q -e '--ddp-port=PORT' out
	result $? "$program --help shows the options"
	call login $program --ddp=help ./job.sh
	test "$status" -eq 0 && test "$(wc -l <out)" -le 24 &&
		! grep -q '.\{81\}' out && test ! -s err &&
		for option in port gpus cpus env check logs show report grace \
			watchdog restarts spares signal supervise; do
			grep -q -e "--ddp-$option" out || break
		done
	result $? "$program --ddp=help shows them in one screen"
	cp out help.out
done
call login sbatch --ddp=help </dev/null
check 'sbatch --ddp=help needs no script' cmp out help.out
printf '#!/bin/sh\ntorchrun train.py\n' >alone.sh
call login sbatch --ddp -N2 -o /dev/null alone.sh
test "$status" -eq 0 && grep -q 'slurm-ddp: alone.sh calls torchrun without srun' err
result $? 'a job that starts torchrun on one node alone is told'
call login scancel --me
call login srun --ddp=help
check 'srun --ddp=help needs no command' cmp out help.out

world 'n1 n1 n2 n2' srun --ddp -N2 --gres=gpu:2
name='srun --ddp does not swallow the command' \
	world 'n1 n1' srun --gres=gpu:2 --ddp
world 'n1 n1' srun --ddp --ddp-port=20001 --gres=gpu:2
check 'the port is the one that was asked for' grep -q ' 20001$' out

# port PORT: whether all ranks have it
port()
{
	! grep -qv " $1\$" out
}

# script LINE: a job script that writes what its steps see into files
script()
{
	cat <<-END
	#!/bin/sh
	#SBATCH -N2 --gres=gpu:2 --ntasks-per-node=2 --cpus-per-task=2
	$1
	srun $show >world
	srun --ddp=off $show >off
	srun --ddp-port=20002 $show >port
	srun --ddp --ddp-port=20003 $show >both
	echo "batch \${RANK-} \${MASTER_ADDR-}"
	END
}

# inherits HOW: the files that script wrote are right
inherits()
{
	test "$status" -eq 0
	result $? "$1: the job succeeds"
	cp world out
	right 'n1 n1 n2 n2' && port "${2:-[0-9]*}"
	result $? "$1: srun in it makes a world"
	check "$1: srun --ddp=off undoes it" \
		test "$(cut -d' ' -f3- off | sort -u)" = \
		"- - - - - - - - - - - - 1 -"
	cp port out
	right 'n1 n1 n2 n2' && port 20002
	result $? "$1: --ddp-port at srun counts"
	cp both out
	right 'n1 n1 n2 n2' && port 20003
	result $? "$1: --ddp and --ddp-port again at srun count"
}

script '' | batch --ddp
check 'the batch script itself is left alone' grep -qx 'batch  ' out
inherits 'sbatch --ddp'
script '#SBATCH --ddp' | batch
inherits '#SBATCH --ddp'
script '#SBATCH --ddp=off' | batch --ddp --ddp-port=20004
inherits 'sbatch --ddp over #SBATCH --ddp=off' 20004

script '' >salloc.sh
call login salloc -N2 --gres=gpu:2 --ntasks-per-node=2 --cpus-per-task=2 \
	--ddp sh salloc.sh
inherits 'salloc --ddp'
call login salloc -N2 --gres=gpu:2 --ntasks-per-node=2 --ddp=off \
	srun "$show"
check 'salloc --ddp=off does nothing' test "$(grep -c ' - - ' out)" = 4
name='srun --ddp within salloc --ddp=off' world 'n1 n1 n2 n2' \
	salloc -N2 --gres=gpu:2 --ntasks-per-node=2 --ddp=off srun --ddp
name='srun --ddp replaces an inherited word that is not known' \
	world 'n1 n1' env SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp=bogus \
	srun --ddp --gres=gpu:2
