# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# Ranks in containers: of bubblewrap, charliecloud and podman; of apptainer, whose package
# of Debian sid can be installed on Debian 13, too; and of pyxis and enroot, where their
# sources lie in the folders that DDP_PYXIS and DDP_ENROOT name. A container has the
# node's /usr and this test's folder, and all else of its own.

cluster --nodes 2 --gpus 2 --cpus 4

image=$scratch/image
mkdir "$image"
(
	cd "$image" || exit 1
	mkdir -p dev etc home mnt proc root run srv sys tmp usr var \
		".$scratch"
	for folder in bin lib lib64 sbin; do
		ln -s usr/$folder $folder
	done
	cp -a /etc/alternatives /etc/group /etc/hosts /etc/ld.so.cache \
		/etc/nsswitch.conf /etc/passwd /etc/resolv.conf etc
)
: >"$image/etc/contained"
cat >within <<'END'
#!/bin/sh
test -e /etc/contained || exit 99
exec "$@"
END
cat >fails <<'END'
#!/bin/sh
test "$RANK" = 2 || exec sleep 1000
echo '{"message": {"message": "E: bad"}}' >"$TORCHELASTIC_ERROR_FILE"
exit 3
END
cat >hangs.py <<'END'
import os, threading, time
if os.environ["RANK"] == "2":
    time.sleep(1000)
threading.Event().wait()
END
cat >computes <<'END'
#!/bin/sh
test "$RANK" = 0 || exec sleep 8
timeout 8 sh -c 'while :; do :; done'
test $? -eq 124
END
cat >sums.py <<'END'
import torch.distributed as dist, torch
dist.init_process_group("gloo")
sum = torch.tensor([dist.get_rank()])
dist.all_reduce(sum)
print(sum.item())
END
chmod 755 within fails computes
if has_pmix; then
	make -s -C "$build" obj/tests/boot/job >&2 || exit 1
	cp "$build/obj/tests/boot/job" .
fi

# contained NAME OPTION... [-- COMMAND...]: what a rank does is as without a
# container. The options are srun's; the command begins the container.
contained()
{
	name=$1 options=
	shift
	while test $# -gt 0 && test "$1" != --; do
		options="$options $1"
		shift
	done
	test $# -eq 0 || shift
	set -- "$@" "$scratch/within"
	# shellcheck disable=SC2086 # several words
	{
		call login srun --ddp -N2 --gres=gpu:2 $options "$@" "$show"
		right 'n1 n1 n2 n2' && test "$status" -eq 0
		result $? "$name: the world is right"
		call login srun --ddp -N2 --gres=gpu:2 $options "$@" \
			"$scratch/fails"
		grep -q '^slurm-ddp: rank 2 failed first on n2 .*: exit code 3: E: bad$' \
			err && test "$status" -eq 3
		result $? "$name: a rank that fails is named with its error"
		call login srun --ddp --ddp-watchdog=5 -N2 --gres=gpu:2 \
			$options "$@" python3 "$scratch/hangs.py"
		grep -q 'rank 2 holds the others up: waiting elsewhere' err &&
			test "$status" -eq 124
		result $? "$name: a rank that hangs is named"
		if has_pmix; then
			call login srun --ddp -N2 --gres=gpu:2 $options "$@" \
				"$scratch/job" create barrier
			equal "$name: ranks meet over PMIx" 0 "$status"
		else
			skip "$name: ranks meet over PMIx" 'this srun has no --mpi=pmix'
		fi
		if /usr/bin/python3 -c 'import torch' 2>why; then
			call login env USE_LIBUV=0 srun --ddp -N2 \
				--gres=gpu:2 $options "$@" /usr/bin/python3 \
				"$scratch/sums.py"
			equal "$name: PyTorch sums over all ranks" '6 6 6 6' \
				"$(paste -sd' ' out)"
		else
			skip "$name: PyTorch" 'no PyTorch'
		fi
	}
	settle
	equal "$name: no file is left" '' "$(rank_files)"
}

if command -v bwrap >/dev/null; then
	contained bubblewrap -- bwrap --unshare-pid --bind "$image" / \
		--ro-bind /usr /usr --bind "$scratch" "$scratch" --proc /proc \
		--dev-bind /dev /dev --ro-bind /sys /sys \
		--ro-bind /etc/hosts /etc/hosts
else
	skip bubblewrap 'bwrap is not installed'
fi

# The templates' image has no Python here, but a FAKE that says who it is.
mkdir -p small/bin small/etc small/usr small/mnt small/tmp small/dev small/proc \
	small/run small/sys small/home small/var/tmp
cp -a /etc/group /etc/hosts /etc/passwd /etc/resolv.conf small/etc
# shellcheck disable=SC2046 # a list of files
cp -L --parents /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*') small
printf '%s\n' '#!/bin/sh' 'echo "$1: $RANK of $WORLD_SIZE"' >small/bin/python3
chmod 755 small/bin/*

# What podman wants of a node for --ipc=host
ipc=--ipc=host
test -d /dev/mqueue || ipc=--volume=/dev/shm:/dev/shm

# template NAME: that of contrib/sbatch runs, but for what here is no GPU's
template()
{
	sed "s/ --device nvidia.com.gpu=all//; s,--ipc=host,$ipc,; s/ --nv / /" \
		"$templates/$1.sbatch" >"$1.sbatch"
	call login ./sbatch_wait -o output "$1.sbatch" "$scratch/small"
	equal "sbatch $1.sbatch" "$(printf 'pytorch_ddp.py: %s of 4\n' 0 1 2 3)" \
		"$(sort output)"
}

if command -v ch-run >/dev/null; then
	contained charliecloud -- ch-run --private-tmp -b /usr:/usr \
		-b "$scratch:$scratch" "$image" --
	template charliecloud
else
	skip charliecloud 'ch-run is not installed'
fi

# Podman needs folders of the node's, and these nodes have one disk; and more than one
# uid. An image is a folder here.
if podman=$(command -v podman); then
	cat >podman <<-END
	#!/bin/sh
	export XDG_RUNTIME_DIR=/dev/shm/podman.\$SLURM_JOB_ID
	mkdir -p -m 700 \$XDG_RUNTIME_DIR
	test "\$1" != run || { shift; set -- run --rootfs "\$@"; }
	exec $podman --log-level error --root \$XDG_RUNTIME_DIR/root "\$@"
	END
	chmod 755 podman
	cp -r "$image" rootfs
	chown -R 61000:61000 rootfs small
	echo 61000:200000:65536 >ids
	for node in n1 n2; do
		for file in subuid subgid; do
			admin $node mount --bind "$scratch/ids" /etc/$file
		done
	done
	whole_path=$PATH PATH=$scratch:$PATH
	set -- podman run --rm --env-host --userns=keep-id --network=host \
		--pid=host "$ipc" -v /usr:/usr:ro -v "$scratch:$scratch" \
		"$scratch/rootfs"
	contained podman -- "$@"
	call login srun --ddp --ddp-watchdog=5 -N2 --gres=gpu:2 "$@" \
		"$scratch/computes"
	equal 'podman: a rank that computes makes progress' 0 "$status"
	call login srun --ddp --ddp-grace=20 -N2 --gres=gpu:2 "$@" \
		"$scratch/fails"
	grep -q '3 other ranks ended by themselves' err && test "$status" -eq 3
	result $? 'podman: ranks get the time of --ddp-grace'
	template podman
	PATH=$whole_path
else
	skip podman 'podman is not installed'
fi
if command -v apptainer >/dev/null; then
	for sub in exec run; do
		contained "apptainer $sub" -- apptainer -s $sub --bind /usr \
			--bind "$scratch" "$image"
	done
	template apptainer
else
	skip apptainer 'apptainer is not installed'
fi

# build_pyxis: pyxis, and of enroot what starts a container
build_pyxis()
{
	cp -r "$DDP_PYXIS" pyxis && cp -r "$DDP_ENROOT" enroot &&
		make -s -C pyxis CC="${CC:-cc}" || return
	mkdir -p prefix/bin prefix/etc/enroot.conf.d prefix/lib run data
	for tool in mount nsenter switchroot; do
		"${CC:-cc}" -std=c99 -O2 -D_FORTIFY_SOURCE=2 \
			-o prefix/bin/enroot-$tool enroot/bin/enroot-$tool.c \
			-lbsd || return
	done
	sed -e "s;@sysconfdir@;$scratch/prefix/etc;" -e 's;@version@;0;' \
		-e "s;@libdir@;$scratch/prefix/lib;" enroot/enroot.in \
		>prefix/bin/enroot
	cp enroot/src/*.sh prefix/lib
	cp -r enroot/conf/mounts prefix/etc/mounts.d
	cp -r enroot/conf/environ prefix/etc/environ.d
	mkdir prefix/etc/hooks.d
	cp enroot/conf/hooks/10-*.sh enroot/conf/hooks/extra/50-slurm-p*.sh \
		prefix/etc/hooks.d
	cat >prefix/etc/enroot.conf <<-END
	ENROOT_RUNTIME_PATH $scratch/run/\$(uname -n)
	ENROOT_DATA_PATH $scratch/data/\$(uname -n)
	ENROOT_CACHE_PATH $scratch/run/cache
	ENROOT_TEMP_PATH /tmp
	END
	chmod -R a+rX prefix
	chmod 755 prefix/bin/*
	chmod 1777 run data
}

if test -d "${DDP_PYXIS-}" && test -d "${DDP_ENROOT-}"; then
	check 'pyxis and enroot are built' build_pyxis
	# As of PyTorch, for which enroot's hook would choose a port and threads
	echo PYTORCH_VERSION=2 >"$image/etc/environment"
	for node in n1 n2; do
		mkdir -p data/$node
		cp -r "$image" data/$node/pyxis_image
		chown -R 61000:61000 data/$node
	done
	PATH=$scratch/prefix/bin:$PATH cluster --nodes 2 --gpus 2
	pyxis="required $scratch/pyxis/spank_pyxis.so runtime_path=$scratch/run/pyxis"
	mkdir -m 755 run/pyxis
	for order in after before; do
		case $order in
		after) printf '%s\n' "optional $plugin" "$pyxis" ;;
		before) printf '%s\n' "$pyxis" "optional $plugin" ;;
		esac >"$dir/cluster/etc/plugstack.conf"
		contained "pyxis $order us" --container-name=image \
			--container-mounts="/usr:/usr,$scratch:$scratch"
	done
	rm -f "$image/etc/environment"
else
	skip pyxis 'there is no source of pyxis and enroot: name their folders in DDP_PYXIS and DDP_ENROOT'
fi
