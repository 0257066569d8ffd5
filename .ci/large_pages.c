/* Brings files into memory in large pages, where the kernel and the file system can (Linux 6.16 and
 * ext4, say); elsewhere it reads them and changes nothing.
 *
 * Programs of hundreds of megabytes, compilers above all, jump about in their code.  In pages of
 * 4 KiB the processor's table of where pages lie is too small for it, and to look a page up is dear
 * in a virtual machine.  The kernel reads a mapped file in large pages if asked to, and leaves them
 * to all who map it later. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void bring(const char *path)
{
	struct stat it;
	volatile const char *bytes;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return;
	/* What is there in small pages stays in them. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (!fstat(fd, &it) && it.st_size) {
		bytes = mmap(NULL, it.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			madvise((void *)bytes, it.st_size, MADV_HUGEPAGE);
			for (off_t at = 0; at < it.st_size; at += 4096)
				(void)bytes[at];
			munmap((void *)bytes, it.st_size);
		}
	}
	close(fd);
}

int main(int argc, char **argv)
{
	for (int idx = 1; idx < argc; idx++)
		bring(argv[idx]);
	return 0;
}
