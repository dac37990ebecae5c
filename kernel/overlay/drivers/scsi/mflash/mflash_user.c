// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash on UML: the host's side. Compiled against the host's C library.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mflash_user.h"

static int open_image(const char *path, unsigned long size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	/*
	 * Nobody else may write the image. A lock of the process, not of the
	 * open file: the guest's processes are children that have it open too
	 * and may live a little longer.
	 */
	if (fcntl(fd, F_SETLK, &lock) || fstat(fd, &st) ||
	    ((unsigned long)st.st_size < size && ftruncate(fd, size))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/**
 * mflash_user_map - map a host file, shared
 * @path: the file, made and enlarged as needed; NULL: anonymous memory
 * @size: bytes
 * @p: where it is
 *
 * Return: 0 or a negative errno.
 */
int mflash_user_map(const char *path, unsigned long size, void **p)
{
	int fd = -1;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (path) {
		fd = open_image(path, size);
		if (fd < 0)
			return fd;
		flags = MAP_SHARED | MAP_NORESERVE;
	}
	*p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	return *p == MAP_FAILED ? -errno : 0;
}

/**
 * mflash_user_unmap - undo mflash_user_map()
 * @p: where it is
 * @size: bytes
 */
void mflash_user_unmap(void *p, unsigned long size)
{
	munmap(p, size);
}
