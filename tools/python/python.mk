# python.mk: the package for Python. Nothing of it needs to be built here: pip builds its extension.
#
# SPDX-License-Identifier: BSD-2-Clause

need_python := faketime gunicorn mypy python3-celery python3-dev python3-django-axes python3-djangorestframework python3-fastapi python3-flask-limiter \
	python3-gevent python3-pip python3-setuptools python3-tap python3-uvicorn python3-wheel redis-tools uwsgi-core uwsgi-plugin-python3
need_deb_python := dh-python pybuild-plugin-pyproject python3-all-dev python3-setuptools
need_bundles_python := python3-dev python3-setuptools python3-wheel
versions_python := tools/python/pyproject.toml

python := /usr/bin/python3
.PHONY: wheel
bundles: wheel
wheel: bundled
	@rm -rf $(bundle)/python && cp -r tools/python $(bundle)/python && cp $(bundle)/LICENSE $(bundle)/python && mkdir $(bundle)/python/sources
	@version=$$(tools/version.sh python) && sed -i "s/^version = .*/version = \"$$version\"/" $(bundle)/python/pyproject.toml
	@$(call library_sources,$(bundle)/python/sources)
	@printf 'include LICENSE\ngraft sources\n' >>$(bundle)/python/MANIFEST.in
	@out=$$(cd $(O)/bundles && pwd) && cd $(bundle)/python && $(python) setup.py -q sdist -d "$$out" 2>../sdist.log || { cat ../sdist.log; exit 1; }
	@rm -r $(bundle)/python/sources
	@cp -r $(bundle)/libs $(bundle)/python/shmlimit/lib && cp $(bundle)/LICENSE.bundled $(bundle)/python
	@out=$$(cd $(O)/bundles && pwd) && cd $(bundle)/python && LDFLAGS='-s -Wl,-z,relro,-z,now' $(python) setup.py -q bdist_wheel -d "$$out" \
		--plat-name manylinux_$$('$(CURDIR)/tools/glibc.sh' ../libs/* | tr . _)_$(ARCH) 2>../wheel.log || { cat ../wheel.log; exit 1; }
