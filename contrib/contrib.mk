# SPDX-License-Identifier: BSD-3-Clause
# A module for environment-modules and Lmod, which is named after the version.
# What ddp-train reads and writes, programs of Python make and draw.
# PyTorch's pmix:// is a folder for PYTHONPATH; Python looks for what describes
# it in a folder that is named after the version, too.
# Packages, from the distribution's archive into deb and rpm. They are
# configured anew: of this build's configuration only Slurm's release goes into
# them, by which a site can keep packages for several. The tests are left to
# make check.
modulesdir = $(datadir)/modulefiles/slurm-ddp
ALL += obj/modules/$(version)
INSTALLED += modulesdir:obj/modules/$(version)
obj/modules/$(version): $(srcdir)/contrib/modules/slurm-ddp.in config.mak
	$(call quiet,SED) sed -e 's|@version@|$(version)|' \
		-e 's|@bindir@|$(bindir)|' -e 's|@libdir@|$(libdir)|' \
		-e 's|@includedir@|$(includedir)|' \
		-e 's|@pythondir@|$(pythondir)|' $< >$@

reportdir = $(datadir)/slurm-ddp
INSTALLED += reportdir:$(srcdir)/contrib/report/ddp-report

pythondir = $(datadir)/slurm-ddp/python
pythoninfodir = $(pythondir)/slurm_ddp-$(version).dist-info
PYTHON_FILES := obj/python/slurm_ddp.py obj/python/METADATA
obj/python/%: $(srcdir)/contrib/pytorch/%.in config.mak
	$(call quiet,SED) sed -e 's|@version@|$(version)|' \
		-e 's|@libdir@|$(libdir)|' $< >$@
ifneq ($(filter %/ddp-train,$(INSTALLED)),)
INSTALLED += pythondir:$(srcdir)/contrib/pytorch/ddp_checkpoint.py
INSTALLED += bindir:$(srcdir)/contrib/plot/ddp-plot
INSTALLED += man1dir:$(srcdir)/contrib/plot/ddp-plot.1
INSTALLED += bindir:$(srcdir)/contrib/tokens/ddp-tokens
INSTALLED += man1dir:$(srcdir)/contrib/tokens/ddp-tokens.1
endif
ifeq ($(HAVE_PMIX),yes)
ALL += $(PYTHON_FILES)
INSTALLED += pythondir:obj/python/slurm_ddp.py
INSTALLED += pythoninfodir:obj/python/METADATA
INSTALLED += pythoninfodir:$(srcdir)/contrib/pytorch/entry_points.txt
endif

.PHONY: deb rpm packages-need-slurm
SLURM_RELEASE = $(basename $(slurm_version))
comma = ,
package = env -u MAKEFLAGS -u MAKEOVERRIDES -u MFLAGS

packages-need-slurm:
	@test -n "$(slurm_version)" || { echo 'configure found no headers of' \
		'Slurm (Debian: libslurm-dev): without them there is nothing' \
		'to package' >&2; exit 1; }

fill_in = sed -e 's/@version@/$(version)/' -e 's/@release@/$(SLURM_RELEASE)/' \
	-e "s/@date@/$$(LC_ALL=C date -u -r configure '+$1')/"

deb: packages-need-slurm dist
	rm -rf deb && mkdir deb
	tar -xzf $(DIST).tar.gz -C deb
	cp $(DIST).tar.gz deb/slurm-ddp_$(version).orig.tar.gz
	cd deb/$(DIST) && cp -r contrib/debian . && rm debian/changelog.in && \
		$(call fill_in,%a$(comma) %d %b %Y %T +0000) \
		contrib/debian/changelog.in >debian/changelog && \
		DEB_BUILD_OPTIONS="noautodbgsym nocheck $$DEB_BUILD_OPTIONS" \
		$(package) dpkg-buildpackage --build-profiles=nocheck -us -uc
	@ls deb/*.deb

# RPMFLAGS=--nodeps where what it needs was not installed by rpm, as on Debian
rpm: packages-need-slurm dist
	rm -rf rpm && mkdir -p rpm/SOURCES
	cp $(DIST).tar.gz rpm/SOURCES
	tar -xzf $(DIST).tar.gz -C rpm
	cd rpm/$(DIST) && $(call fill_in,%a %b %d %Y) \
		contrib/rpm/slurm-ddp.spec.in >../slurm-ddp.spec
	rm -r rpm/$(DIST)
	$(package) rpmbuild -ba $(RPMFLAGS) --define "_topdir $(CURDIR)/rpm" \
		rpm/slurm-ddp.spec
	@ls rpm/RPMS/*/*.rpm rpm/SRPMS/*.rpm
