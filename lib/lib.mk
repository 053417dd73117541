# SPDX-License-Identifier: BSD-3-Clause
# The pure core: one archive that the plugin, the tools and the tests link; and
# what knows hwloc, whose users link HWLOC_LIBS; and libddp, which is lib/job
# and lib/nccl, and links PMIx and nothing else that a node might lack.
CORE_SRC := $(sort $(foreach room,util layout place request, \
	$(wildcard $(srcdir)/lib/$(room)/*.c)))
CORE_OBJ := $(CORE_SRC:$(srcdir)/%.c=obj/%.o)

ALL += obj/lib/libddp_core.a
obj/lib/%.o: PART_CFLAGS = -fPIC -fvisibility=hidden
obj/lib/libddp_core.a: $(CORE_OBJ)

TOPO_SRC := $(sort $(wildcard $(srcdir)/lib/topo/*.c))
TOPO_OBJ := $(TOPO_SRC:$(srcdir)/%.c=obj/%.o)
ifeq ($(HAVE_HWLOC),yes)
ALL += obj/lib/libddp_topo.a
TOPO_LIB := obj/lib/libddp_topo.a
endif
obj/lib/topo/%.o: PART_CFLAGS = -fPIC -fvisibility=hidden $(HWLOC_CFLAGS)
obj/lib/libddp_topo.a: $(TOPO_OBJ)

# What supervisor and agents say to each other; its users link GCRYPT_LIBS
WIRE_SRC := $(sort $(wildcard $(srcdir)/lib/wire/*.c))
WIRE_OBJ := $(WIRE_SRC:$(srcdir)/%.c=obj/%.o)
ifeq ($(HAVE_GCRYPT),yes)
ALL += obj/lib/libddp_wire.a
WIRE_LIB := obj/lib/libddp_wire.a
endif
obj/lib/wire/proof.o: PART_CFLAGS = -fPIC -fvisibility=hidden $(GCRYPT_CFLAGS)
obj/lib/libddp_wire.a: $(WIRE_OBJ)

# What the tools share; not installed.
TOOL_SRC := $(sort $(wildcard $(srcdir)/lib/tool/*.c))
ifneq ($(HAVE_MPI),yes)
TOOL_SRC := $(filter-out %/mpi_private.c,$(TOOL_SRC))
endif
TOOL_OBJ := $(TOOL_SRC:$(srcdir)/%.c=obj/%.o)
obj/lib/tool/mpi_private.o: PART_CFLAGS = $(MPI_CFLAGS)
obj/lib/libddp_tool.a: $(TOOL_OBJ)

# The archive is for the tools, and for tests of what the shared library does
# not show.
DDP_SRC := $(sort $(wildcard $(srcdir)/lib/job/*.c $(srcdir)/lib/nccl/*.c))
DDP_OBJ := $(DDP_SRC:$(srcdir)/%.c=obj/%.o)
DDP_MAP := $(srcdir)/lib/libddp.map
obj/lib/job/%.o obj/lib/nccl/%.o: PART_CFLAGS = -fPIC -pthread
obj/lib/job/client.o: PART_CFLAGS = -fPIC -pthread $(PMIX_CFLAGS)
obj/lib/libddp.a: $(DDP_OBJ)

obj/lib/libddp.so.0: $(DDP_OBJ) obj/lib/libddp_core.a $(DDP_MAP)
	$(call quiet,LD) $(link) -shared -Wl,-soname,libddp.so.0 \
		-Wl,-z,defs -Wl,-z,nodelete -Wl,--version-script=$(DDP_MAP) \
		$(PMIX_LIBS) -ldl -pthread $(LIBS)
obj/lib/libddp.so: obj/lib/libddp.so.0
	$(call quiet,LN) ln -sf libddp.so.0 $@
obj/lib/libddp.pc: $(srcdir)/lib/libddp.pc.in config.mak
	$(call quiet,SED) sed -e "s|@version@|$(version)|" \
		-e "s|@libdir@|$(libdir)|" \
		-e "s|@includedir@|$(includedir)|" $< >$@

# A page under each function's name, which shows the page that describes it.
MAN3_LINKS := $(shell grep -o 'ddp_[a-z0-9_]*;' $(DDP_MAP) | tr -d ';')
MAN3_LINKS := $(MAN3_LINKS:%=obj/man/%.3)
obj/man/ddp_nccl_%.3: $(DDP_MAP)
	$(call quiet,GEN) echo '.so man3/ddp_nccl.3' >$@
obj/man/ddp_%.3: $(DDP_MAP)
	$(call quiet,GEN) echo '.so man3/ddp.3' >$@

man3dir = $(mandir)/man3
examplesdir = $(docdir)/examples
pkgconfigdir = $(libdir)/pkgconfig
INSTALLED += $(patsubst %,docdir:%,$(srcdir)/README.md $(srcdir)/LICENSE)
ifeq ($(HAVE_PMIX),yes)
ALL += obj/lib/libddp.so.0 obj/lib/libddp.so obj/lib/libddp.pc $(MAN3_LINKS)
INSTALLED += libdir:obj/lib/libddp.so.0 libdir:obj/lib/libddp.so
INSTALLED += pkgconfigdir:obj/lib/libddp.pc
INSTALLED += $(patsubst %,includedir:%,$(wildcard $(srcdir)/lib/include/*.h))
INSTALLED += $(patsubst %,man3dir:%,$(wildcard $(srcdir)/lib/*.3) \
	$(MAN3_LINKS))
INSTALLED += $(patsubst %,examplesdir:%, \
	$(wildcard $(srcdir)/contrib/examples/*))
endif
