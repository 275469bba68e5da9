# project.mk: where the project is published, and who is written to. Fill it in here, and nowhere else: packages take it from here.
# What is empty is left out. A builder of packages has DEBFULLNAME and DEBEMAIL, as Debian's tools have them.
#
# SPDX-License-Identifier: BSD-2-Clause
HOMEPAGE    ?=
DEBFULLNAME ?= the shmlimit authors
DEBEMAIL    ?=
