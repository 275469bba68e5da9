PHP_ARG_WITH([shmlimit], [for shmlimit support],
  [AS_HELP_STRING([--with-shmlimit[=DIR]], [Include shmlimit support. DIR has include/ and lib/ of libshmlimit and
    libshmlimit-gate; without it pkg-config finds them])])

if test "$PHP_SHMLIMIT" != "no"; then
  if test "$PHP_SHMLIMIT" != "yes"; then
    PHP_ADD_INCLUDE([$PHP_SHMLIMIT/include])
    PHP_ADD_LIBRARY_WITH_PATH([shmlimit], [$PHP_SHMLIMIT/$PHP_LIBDIR], [SHMLIMIT_SHARED_LIBADD])
    PHP_ADD_LIBRARY_WITH_PATH([shmlimit-gate], [$PHP_SHMLIMIT/$PHP_LIBDIR], [SHMLIMIT_SHARED_LIBADD])
  else
    PKG_CHECK_MODULES([SHMLIMIT], [shmlimit-gate])
    PHP_EVAL_INCLINE([$SHMLIMIT_CFLAGS])
    PHP_EVAL_LIBLINE([$SHMLIMIT_LIBS], [SHMLIMIT_SHARED_LIBADD])
  fi
  PHP_SUBST([SHMLIMIT_SHARED_LIBADD])
  PHP_NEW_EXTENSION([shmlimit], m4_normalize([shmlimit.c shared.c limiter.c segment.c
    gate_class.c gate.c spec.c lines.c places.c]), [$ext_shared],, [-DZEND_ENABLE_STATIC_TSRMLS_CACHE=1 -fvisibility=hidden])
  PHP_ADD_MAKEFILE_FRAGMENT
fi
