# SPDX-License-Identifier: BSD-3-Clause
# The plugin, and what its administrator needs beside it. Slurm's symbols are
# resolved when Slurm loads it, so it cannot be linked with -z defs. It sees
# SLURM_CFLAGS and no other dependency's, and needs hwloc through lib/topo and
# libgcrypt through lib/wire.
PLUGIN_SRC := $(sort $(wildcard $(srcdir)/plugin/*.c \
	$(srcdir)/plugin/*/*.c))
PLUGIN_OBJ := $(PLUGIN_SRC:$(srcdir)/%.c=obj/%.o)
# What is pure in it, for tests: an archive
PURE_SRC := $(sort $(wildcard $(srcdir)/plugin/proc/*.c \
	$(srcdir)/plugin/verdict/*.c) $(addprefix $(srcdir)/plugin/, \
	options/notice.c supervisor/sieve.c))
PURE_LIB := obj/plugin/libddp_pure.a
PLUGIN_MAP := $(srcdir)/plugin/spank_ddp.map

man7dir = $(mandir)/man7
man8dir = $(mandir)/man8
ddpconfdir = $(sysconfdir)/slurm-ddp
sbatchdir = $(datadir)/slurm-ddp/sbatch
sandboxdir = $(datadir)/slurm-ddp/sandbox
sitesdir = $(datadir)/slurm-ddp/sites

obj/plugin/%.o: PART_CFLAGS = -fPIC -I$(srcdir)/plugin $(SLURM_CFLAGS) \
	-DDDP_BINDIR='"$(bindir)"'
obj/plugin/spank_ddp.so: $(PLUGIN_OBJ) $(TOPO_LIB) $(WIRE_LIB) \
		obj/lib/libddp_core.a $(PLUGIN_MAP)
	$(call quiet,LD) $(link) -shared -Wl,--version-script=$(PLUGIN_MAP) \
		$(HWLOC_LIBS) $(GCRYPT_LIBS) -ldl -pthread $(LIBS)

obj/plugin/libddp_pure.a: $(PURE_SRC:$(srcdir)/%.c=obj/%.o)

obj/etc/ddp.conf: $(srcdir)/etc/ddp.conf config.mak
	$(call quiet,SED) sed -e "s|/usr/local/etc/slurm-ddp|$(ddpconfdir)|" \
		-e "s|^optional spank_ddp.so|optional $(spank_ddp)|" $< >$@

# Where ddp-sandbox, once installed, finds what is installed with it
obj/sandbox/paths: config.mak $(srcdir)/plugin/plugin.mk
	$(call quiet,GEN) printf '%s\n' "$(sandboxdir)" "$(plugindir)" \
		"$(bindir)" "$(mandir)" >$@

ifeq ($(HAVE_PLUGIN),yes)
ALL += obj/plugin/spank_ddp.so obj/etc/ddp.conf obj/sandbox/paths
INSTALLED += plugindir:obj/plugin/spank_ddp.so
INSTALLED += man7dir:$(srcdir)/plugin/slurm-ddp.7
INSTALLED += man8dir:$(srcdir)/plugin/spank_ddp.8
INSTALLED += ddpconfdir:obj/etc/ddp.conf
INSTALLED += $(patsubst %,sitesdir:%,$(wildcard $(srcdir)/etc/sites/*))
INSTALLED += $(patsubst %,sbatchdir:%,$(wildcard $(srcdir)/contrib/sbatch/*))
INSTALLED += $(patsubst %,sandboxdir:%,$(filter-out %/demo %/prepare, \
	$(wildcard $(srcdir)/contrib/sandbox/*)))
INSTALLED += sandboxdir:obj/sandbox/paths
endif
