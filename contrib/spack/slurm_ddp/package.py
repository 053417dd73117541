# SPDX-License-Identifier: BSD-3-Clause
# For Spack: copy this folder among the packages of a repository of yours. The
# source is what make dist writes, in the current directory:
#
#     spack install --no-checksum slurm-ddp
#
# Let slurm be the external package of the cluster, since Slurm loads the plugin
# into its own programs. Afterwards plugstack.conf needs the line
#
#     include <installation>/etc/slurm-ddp/ddp.conf
#
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class SlurmDdp(AutotoolsPackage):
    """A SPANK plugin with which srun --ddp turns a Slurm allocation into a
    correct data-parallel job, with libddp for NCCL communicators over PMIx, and
    ddp-info, ddp-bench and ddp-train."""

    homepage = "https://slurm.schedmd.com/spank.html"
    manual_download = True
    url = f"file://{os.getcwd()}/slurm-ddp-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="ddp-train on many ranks, ddp-bench over MPI")
    variant("train", default=True, description="ddp-train")
    variant("cuda", default=False, when="+train", description="ddp-train on GPUs")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:")
    depends_on("libgcrypt")
    depends_on("pmix")
    depends_on("slurm")
    depends_on("mpi", when="+mpi")
    depends_on("openblas", when="+train")
    depends_on("cuda", when="+cuda")

    def configure_args(self):
        args = [f"--with-{name}={self.spec[name].prefix}" for name in ("slurm", "hwloc", "pmix")]
        args.append(f"--with-gcrypt={self.spec['libgcrypt'].prefix}")
        args.append(f"--with-slurm-plugindir={self.prefix.lib.slurm}")
        for variant, option, name in (
            ("+mpi", "mpi", "mpi"),
            ("+train", "blas", "openblas"),
            ("+cuda", "cuda", "cuda"),
            ("+cuda", "cublaslt", "cuda"),
        ):
            if self.spec.satisfies(variant):
                args.append(f"--with-{option}={self.spec[name].prefix}")
            else:
                args.append(f"--without-{option}")
        args += [f"--without-{name}" for name in ("onednn", "criterion", "nccl")]
        return args
