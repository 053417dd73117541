# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What is started by srun, but is no rank: MPI launchers' helpers, salloc's
# shell, batch scripts.

cluster --nodes 2 --gpus 2 --cpus 8

call login srun -n1 "$show"
cp out plain.out
for helper in orted prted hydra_pmi_proxy hydra_bstrap_proxy; do
	cp show $helper
	call login srun --ddp -N2 -n2 --gres=gpu:2 ./$helper
	equal "srun --ddp $helper is left alone" \
		"0 $(cut -d' ' -f3-14 plain.out)" \
		"$status $(cut -d' ' -f3-14 out | sort -u)"
	rm $helper
done

if command -v mpirun >/dev/null; then
	cat >mpirun.sh <<-'END'
	#!/bin/sh
	mpirun -n 4 sh -c 'echo "$OMPI_COMM_WORLD_RANK of \
		$OMPI_COMM_WORLD_SIZE on $(uname -n), RANK ${RANK-unset}"'
	END
	printf '%s, RANK unset\n' '0 of 4 on n1' '1 of 4 on n1' \
		'2 of 4 on n2' '3 of 4 on n2' >wanted
	set -- -N2 --gres=gpu:2 --ntasks-per-node=2 -c2
	batch --ddp "$@" <mpirun.sh
	equal 'mpirun in sbatch --ddp starts its own ranks' \
		"$(cat wanted)" "$(sort out)"
	check 'without a word' test ! -s err
	call login salloc -Q --ddp "$@" sh mpirun.sh
	equal 'mpirun in salloc --ddp starts its own ranks' \
		"$(cat wanted)" "$(sort out)"
	check 'without a word' test ! -s err
else
	skip 'mpirun in sbatch --ddp' 'no mpirun'
fi

# The environments of the batch scripts themselves
cat >environment.sh <<-'END'
#!/bin/sh
env | sort
END
set -- -N2 --gres=gpu:2 --ntasks-per-node=2 -c2
batch "$@" <environment.sh
cp out plain.out
batch --ddp "$@" <environment.sh
cp out ddp.out
sleep 1
batch "$@" <environment.sh
noise plain.out out >noise
equal 'a batch script sees nothing but the option' \
	'> SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp=(null)' \
	"$(diff plain.out ddp.out | grep '^[<>]' | grep -Evf noise)"

# salloc's shell as a step of its own, on the first node
cluster --nodes 2 --gpus 2 --cpus 8 \
	--slurm LaunchParameters=use_interactive_step
call login sh -c 'echo "echo shell \${RANK-unset} on \$(uname -n)
	srun $0; exit" | SHELL=/bin/sh script -qec \
	"salloc -Q --ddp -N2 --gres=gpu:2 --ntasks-per-node=2 -c2" /dev/null' \
	"$show"
check "salloc --ddp's shell on a node is left alone" \
	grep -q 'shell unset on n1' out
tr -d '\r' <out | grep -oE '[0-9] n[12] [0-9].*' >world
cp world out
right 'n1 n1 n2 n2'
result $? 'and srun in it makes a world'
