/*
 * strerror: what our errors mean. The list is the contract's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "shmlimit.h"

EXPORT const char *shmlimit_strerror(int error)
{
	/* Negating in unsigned arithmetic: INT_MIN has no positive counterpart. */
	switch (error < 0 ? 0u - (unsigned)error : (unsigned)error) {
	case 0:
		return "no error";
	case EINVAL:
		return "an argument is missing, unknown, or out of range";
	case E2BIG:
		return "a field is set that this library does not know";
	case EILSEQ:
		return "a name is empty or contains a forbidden character";
	case ENAMETOOLONG:
		return "a name is too long";
	case EMSGSIZE:
		return "a key must be 1 to 1024 bytes long";
	case EDOM:
		return "a rule's capacity, refill, period and warm-up must be 1 or more, unless each call brings its limit";
	case ERANGE:
		return "the rule's capacity and rate cannot be represented exactly";
	case EFBIG:
		return "the table is larger than the segment can grow to (slots_max), or a capacity above 65536";
	case EBUSY:
		return "a rule's algorithm cannot be changed: remove the rule first";
	case EOPNOTSUPP:
		return "the rule's algorithm does not have this operation";
	case EALREADY:
		return "the table grew, and keys are left in the old one";
	case ETIME:
		return "the place is not held: it ended, was left, or lost its slot";
	case ECHILD:
		return "no such process, to bind a place to";
	case ENOPKG:
		return "the system has no data of this time zone (package tzdata), or its offset follows no yearly rule";
	case ESRCH:
		return "no such rule";
	case EXFULL:
		return "the segment has no room for another rule, or for another process with places";
	case EROFS:
		return "the segment was opened read-only, or /dev/shm is";
	case EAGAIN:
		return "another process holds the lock of the writers of rules";
	case ENOENT:
		return "no such segment";
	case EEXIST:
		return "a segment or file of this name exists";
	case EMEDIUMTYPE:
		return "the file is not a shmlimit segment";
	case EPROTO:
		return "the segment has another layout version";
	case EUCLEAN:
		return "the segment is damaged";
	case ESTALE:
		return "the segment was created before the last boot";
	case EXDEV:
		return "the segment was created in another time namespace";
	case EACCES:
		return "no permission on the segment";
	case EPERM:
		return "the segment belongs to neither root nor this user, or its group cannot be set";
	case ENOSYS:
		return "a sandbox, or a kernel before 3.17, refuses a system call: open, fallocate, pwrite, pread, fchmod, linkat, unlink, mmap, flock or getrandom";
	case EHOSTDOWN:
		return "the limit's Redis server does not answer";
	case ENODEV:
		return "/dev/shm is no tmpfs, or /proc is missing";
	case EDQUOT:
		return "a quota, or a limit on the size of files, is exceeded";
	case ENOSPC:
		return "no room left in /dev/shm";
	case ENOBUFS:
		return "a buffer is too small";
	case ENOMEM:
		return "out of memory";
	case EMFILE:
		return "this process has too many files open";
	case ENFILE:
		return "this host has too many files open";
	default:
		return "an error of the operating system";
	}
}
