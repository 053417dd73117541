# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What cannot work is refused before anything runs, in one sentence, by srun's
# exit code 1, whether plugstack.conf says "optional" or "required".

# refused_by_srun: what srun, sbatch and salloc refuse
refused_by_srun()
{
	while IFS='|' read -r words command; do
		# shellcheck disable=SC2086 # several words
		name="$word: $command" refuses "$words" $command
	done <<-END
	--ddp 'fast' is not one of explain, dry-run, torchrun, srun, on, off, help|srun --ddp=fast true
	--ddp 'fast' is not one of|srun --ddp=off,fast true
	--ddp 'fast' is not one of|srun --ddp=explain,fast true
	--ddp '' is not one of|srun --ddp=, true
	--ddp 'fast' is not one of|salloc --ddp=fast true
	--ddp 'fast' is not one of|sbatch --ddp=fast --wrap true
	--ddp: off is given with other words|srun --ddp=explain,off true
	--ddp: off is given with other words|salloc --ddp=off,dry-run true
	--ddp-gpus 'some' is not one of all, own, share, off|srun --ddp --ddp-gpus=some true
	--ddp-gpus '' is not one of|sbatch --ddp --ddp-gpus= --wrap true
	--ddp-cpus 'far' is not one of near, spread, off|srun --ddp --ddp-cpus=far true
	--ddp-cpus 'far' is not one of|salloc --ddp --ddp-cpus=far true
	--ddp-gpus: given without --ddp|srun --ddp-gpus=own true
	--ddp-cpus: given without --ddp|sbatch --ddp-cpus=off --wrap true
	--mpi=pmix|srun --ddp=dry-run --mpi=none true
	--ddp-port=http: not a port|srun --ddp --ddp-port=http true
	--ddp-port=80: not a port|srun --ddp --ddp-port=80 true
	--ddp-port=65536: not a port|salloc --ddp --ddp-port=65536 true
	--ddp-port: given without --ddp|srun --ddp-port=20000 true
	--ddp-port: given without --ddp|salloc --ddp-port=20000 true
	--ddp-port: given without --ddp|sbatch --ddp-port=20000 --wrap true
	--gpus=3 does not divide|srun --ddp -N2 --gpus=3 true
	-N NODES|srun --ddp --gpus=4 true
	-N1-2 leaves it open|srun --ddp -N1-2 --gres=gpu:2 true
	-n|srun --ddp -N1-2 --gpus-per-node=2 true
	-n|srun --ddp -N2 --gpus-per-task=1 true
	-n|srun --ddp --gpus-per-socket=1 --sockets-per-node=1 true
	expected a number of GPUs|srun --ddp --gres=gpu:a:b:c true
	--ddp=off: given for one component|srun --ddp -n1 true : --ddp=off -n1 true
	--ntasks-per-node=2|salloc --ddp -N2 --gres=gpu:2 true
	--cpus-per-gpu|salloc --ddp -N2 --gpus=4 true
	--ntasks-per-node=2|sbatch --ddp -N2 --gres=gpu:2 --wrap true
	CPUs for 1|sbatch --ddp -N2 --gpus-per-node=2 --wrap true
	END
}

# forges_nothing: what others wrote begins no line, nor an escape sequence
forges_nothing()
{
	forged=$(printf 'a\n\033[31msrun: error: fake')
	name="$word: a forged line in --ddp" \
		refuses "--ddp 'a??[31msrun: error: fake' is not one of" \
		srun "--ddp=$forged" true
	call login env "MASTER_ADDR=$forged" srun --ddp=explain -w n1 true
	grep -q 'master a??\[31msrun: error: fake: MASTER_ADDR was exp' err &&
		! LC_ALL=C grep -q '[^ -~]\|^srun: error: fake' err
	result $? "$word: a forged line in MASTER_ADDR"
	name='a forged line in MASTER_PORT' refuses_ranks n1 \
		"MASTER_PORT=a??[31msrun: error: fake is not" \
		env "MASTER_PORT=$forged" srun --ddp -w n1
}

# refuses_ranks NODES WORDS CMD...: no rank runs on these nodes; each rank that
# prints anything is there, and prints one line with the words; the step ends,
# and ranks on other nodes with it.
refuses_ranks()
{
	nodes=$1 words=$2
	shift 2
	call login "$@" sh -c 'echo ran on $(uname -n); exec sleep 1000'
	test "$status" -ne 0 && ! grep -q "ran on $nodes" out &&
		grep slurm-ddp err >why &&
		! grep -qvE "^slurm-ddp: rank [0-9]+ on $nodes: " why &&
		! grep -qvF -- "$words" why &&
		test -z "$(cut -d' ' -f3 why | sort | uniq -d)"
	result $? "$word: ${name:-$*} is refused: $words"
	name=
}

# hosts NODE: stdin is /etc/hosts of a node, until it is unmounted
hosts()
{
	cat >"hosts.$1"
	admin "$1" mount --bind "$scratch/hosts.$1" /etc/hosts
}

refused_by_ranks()
{
	step='srun --ddp -N2 --gres=gpu:2'
	admin n2 sed '/ n1$/d' /etc/hosts | hosts n2
	# shellcheck disable=SC2086 # several words
	name='n1 unknown on n2' refuses_ranks n2 \
		"the master's name n1 does not resolve" $step
	grep -q ' on n2: .* on n2; .*export another MASTER_ADDR$' err
	result $? "$word: the node and the remedy are named"
	name="$word: on one node it does not matter" world 'n2 n2' \
		srun --ddp -w n2 --gres=gpu:2
	# shellcheck disable=SC2086
	call login env MASTER_ADDR=10.77.0.1 $step true
	equal "$word: nor with a MASTER_ADDR of the user's" 0 "$status"
	admin n2 umount -l /etc/hosts
	{ grep -v ' n1$' "$dir/cluster/etc/hosts"; echo 127.0.1.1 n1; } |
		hosts n1
	# shellcheck disable=SC2086
	name='n1 as 127.0.1.1 on n1' refuses_ranks n1 \
		"the master's name n1 resolves to loopback (127.0.1.1)" $step
	name="$word: on one node it does not matter" world n1 \
		env GLOO_SOCKET_IFNAME=eth0 srun --ddp -w n1 --gres=gpu:1
	admin n1 umount -l /etc/hosts
	for bad in 0.0.0.0 255.255.255.255 ::ffff:127.0.0.1 ff02::1; do
		# shellcheck disable=SC2086
		name="MASTER_ADDR=$bad" refuses_ranks 'n[12]' \
			"the master's name $bad resolves to " \
			env "MASTER_ADDR=$bad" $step
	done
	for bad in http 0 70000; do
		name="MASTER_PORT=$bad" refuses_ranks n1 "MASTER_PORT=$bad is" \
			env "MASTER_PORT=$bad" srun --ddp -w n1
		equal "$word: with exit code 1" 1 "$status"
	done
	call login srun --ddp --mpi=none -n1 echo ran : -n1 echo ran
	test "$status" -eq 1 && ! test -s out && grep -qF -- --mpi=pmix err
	result $? "$word: a heterogeneous step without pmix is refused"
}

# listener NODE FAMILY ADDRESS PORT: use it until a line comes from fifo 9
listener()
{
	rm -f held release
	mkfifo held release
	exec 9<>release
	# shellcheck disable=SC2016 # perl's
	admin "$1" perl -MSocket=:all -e '
		my ($family, $address, $port) = (eval shift, @ARGV);
		my ($e, $at) = getaddrinfo($address, $port,
			{ family => $family, socktype => SOCK_STREAM,
			  flags => AI_NUMERICHOST | AI_PASSIVE });
		socket(S, $family, SOCK_STREAM, 0) or die;
		setsockopt(S, IPPROTO_IPV6, IPV6_V6ONLY, 1)
			if $family == PF_INET6;
		bind(S, $at->{addr}) && listen(S, 1) or die;
		print "held\n"; close(STDOUT); <STDIN>' \
		"$2" "$3" "$4" <release >held 9>&- &
	read -r _ <held
}

refused_for_the_port()
{
	step='srun --ddp -w n[1-2] -N2 --gres=gpu:1 --ddp-port=20006'
	while read -r family address; do
		listener n1 "$family" "$address" 20006
		# shellcheck disable=SC2086 # several words
		name="a port held at $address" refuses_ranks n1 \
			'another process holds port 20006 on n1' $step
		echo >&9
		wait
	done <<-END
	PF_INET 0.0.0.0
	PF_INET 10.77.0.1
	PF_INET6 ::
	END
	# The second step of a job has the port after that of the first.
	hold -w n1,n2 -n2
	step2="srun --ddp --jobid=$job -N2 -n2"
	# shellcheck disable=SC2086
	call login $step2 sh -c 'test $RANK != 0 || echo $MASTER_PORT'
	port=$(($(cat out) + 1))
	listener n1 PF_INET 0.0.0.0 $port
	# shellcheck disable=SC2086
	name='a port that was not asked for' refuses_ranks n1 \
		"another process holds port $port on n1" $step2
	echo >&9
	wait
	release
	listener n2 PF_INET 0.0.0.0 20006
	# shellcheck disable=SC2086
	name="$word: a port held elsewhere does not matter" \
		world 'n1 n2' $step
	echo >&9
	wait
	exec 9>&-
}

# A node whose plugstack.conf lacks the plugin, or that has not got the plugin
without_the_plugin()
{
	: >empty
	mkdir -p nothing
	lib=${plugin%/*}
	for mount in "empty $dir/cluster/etc/plugstack.conf" "nothing $lib"; do
		# shellcheck disable=SC2086 # two words
		admin n2 mount --bind "$scratch/"$mount
		call login srun --ddp -N2 --gres=gpu:1 "$show"
		p=slurm-ddp-plugin-missing-on-this-node
		equal "without ${mount##*/}: the variables on n2 say so" \
			"$p $p $p" "$(grep ' n2 ' out | cut -d' ' -f3-5)"
		call login srun --ddp -N2 --gres=gpu:1 /usr/bin/python3 -c \
			'import os; int(os.environ["RANK"])'
		test "$status" -ne 0 &&
			grep -q "ValueError: invalid literal for int.*$p" err
		result $? "Python ends at once, and names it: no ${mount##*/}"
		admin n2 umount -l "${mount#* }"
	done
}

refused_for_a_key()
{
	plugstack "$word" 'speed=high'
	for command in 'srun --ddp' 'salloc --ddp' 'sbatch --ddp --wrap'; do
		# shellcheck disable=SC2086
		name="$word: $command under speed=high" \
			refuses "speed=high: key 'speed' is not one of ddp," \
			$command true
	done
	for key in mpi=fast mpi port-range=1-2 interface= cpus=no topology= \
		topology=here.xml; do
		plugstack "$word" "$key"
		name="$word: srun --ddp under $key" refuses "$key" \
			srun --ddp true
		call login srun echo ran
		equal "$word: and a step without it runs" 'ran 0' \
			"$(cat out err) $status"
	done
	plugstack "$word"
}

# An interface that one node has
refused_for_the_interface()
{
	admin n1 ip link add ib7 type veth peer name ib7-end
	admin n1 ip address add 192.0.2.1/32 dev ib7
	plugstack "$word" interface=ib7
	name='interface=ib7, which n1 has' refuses_ranks n2 \
		'interface=ib7: n2 has no such network interface' \
		srun --ddp -w n1,n2 -N2
	name="$word: for names of the user's it does not matter" \
		world 'n1 n2' env GLOO_SOCKET_IFNAME=eth0 \
		NCCL_SOCKET_IFNAME=eth0 srun --ddp -w n1,n2 -N2
	admin n1 ip link delete ib7
	plugstack "$word"
}

# A key that is wrong on one node only
refused_on_a_node()
{
	echo "$word $plugin speed=high" >other.conf
	admin n2 mount --bind "$scratch/other.conf" \
		"$dir/cluster/etc/plugstack.conf"
	name='speed=high on n2' refuses_ranks n2 "speed=high: key 'speed' is" \
		srun --ddp -w n1,n2
	call login srun -w n2 echo ran
	equal "$word: and a step without --ddp runs there" 'ran 0' \
		"$(cat out) $status"
	printf '%s\n' '#!/bin/sh' 'echo batch' 'srun echo ran' >wrong.sh
	batch -w n2 --ddp <wrong.sh
	equal "$word: a batch script does too, and a step of it does not" \
		'1 batch 1' "$status $(cat out) $(grep -c speed=high err)"
	admin n2 umount -l "$dir/cluster/etc/plugstack.conf"
}

cluster --nodes 3 --gpus 2 --cpus 8
for word in optional required; do
	plugstack $word
	hold -N2 --gres=gpu:2
	refused_by_srun
	release
	refuses 'on one node and 1 on another' salloc -N2 --gpus=3 \
		srun --ddp true
	forges_nothing
	refused_by_ranks
	refused_for_the_port
	refused_for_a_key
	refused_for_the_interface
	refused_on_a_node
	call login sinfo -hN -t drain,down,fail
	equal "$word: and all nodes stay up" '' "$(cat out err)"
done
plugstack optional
without_the_plugin
