shmlimit.lo: shmlimit_arginfo.h
shmlimit_arginfo.h: $(srcdir)/arginfo.php $(srcdir)/shmlimit.stub.php
	$(PHP_EXECUTABLE) -n $(srcdir)/arginfo.php >$@
