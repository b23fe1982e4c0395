/*
 * file.c: regular files, opened once, read with pread. A file that shrinks while it is open is an IO error at the next
 * read, never a signal: that is why nothing is mapped.
 *
 * Files named by a model are opened below a root folder. openat2 resolves the whole path in the kernel under
 * RESOLVE_BENEATH and without links; where the kernel lacks it, the path is walked folder by folder with O_NOFOLLOW,
 * each step relative to the open folder before it, so that swapping a folder for a link between two steps gains
 * nothing.
 */
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct file {
    atomic_uint refs;
    int fd;                /* -1: memory */
    const uint8_t *memory; /* borrowed */
    uint64_t size;
};

/* O_NONBLOCK: opening a FIFO returns at once, to be refused. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

static file *file_make(int fd, const void *memory, uint64_t size) {
    file *f = mem_alloc(sizeof *f);
    if (!f) return NULL;
    atomic_init(&f->refs, 1);
    f->fd = fd;
    f->memory = memory;
    f->size = size;
    return f;
}

/* Takes over fd. */
static braid_status file_adopt(int fd, const char *name, bool single_link, file **out, braid_error *err) {
    struct stat s;
    braid_status status = BRAID_OK;
    if (fstat(fd, &s) != 0)
        status = error_set(err, BRAID_IO, "%s: %s", name, strerror(errno));
    else if (!S_ISREG(s.st_mode))
        status = error_set(err, BRAID_IO, "%s: not a regular file", name);
    else if (single_link && s.st_nlink > 1)
        status = error_set(err, BRAID_MODEL, "%s: is a hard link", name);
    else if (!(*out = file_make(fd, NULL, (uint64_t)s.st_size)))
        status = error_memory(err);
    if (status) close(fd);
    return status;
}

braid_status file_open(const char *path, file **out, braid_error *err) {
    *out = NULL;
    int fd;
    do fd = open(path, OPEN_FLAGS);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return error_set(err, BRAID_IO, "%s: %s", path, strerror(errno));
    return file_adopt(fd, path, false, out, err);
}

braid_status file_from_memory(const void *bytes, size_t size, file **out, braid_error *err) {
    *out = file_make(-1, bytes, size);
    return *out ? BRAID_OK : error_memory(err);
}

/* Is the location a plain relative path; says why not. */
static braid_status location_check(const char *location, braid_error *err) {
    const char *why = NULL;
    size_t length = strlen(location);
    if (length == 0)
        why = "is empty";
    else if (length >= 4096)
        why = "is too long";
    else if (location[0] == '/')
        why = "is absolute";
    else if (strchr(location, '\\'))
        why = "holds a backslash";
    else if (location[length - 1] == '/')
        why = "names a folder";
    for (const char *part = location; !why && *part; part += strspn(part, "/")) {
        size_t n = strcspn(part, "/");
        if (n == 2 && part[0] == '.' && part[1] == '.') why = "holds '..'";
        part += n;
    }
    return why ? error_set(err, BRAID_MODEL, "file location '%.200s' %s", location, why) : BRAID_OK;
}

static int root_open(const char *root) {
    return open(*root ? root : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int walk(int folder, const char *location) {
    int at = dup(folder);
    for (const char *part = location; at >= 0;) {
        part += strspn(part, "/");
        size_t n = strcspn(part, "/");
        bool last = part[n] == 0;
        char name[256];
        if (n >= sizeof name) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, part, n);
        name[n] = 0;
        int next = openat(at, name, O_NOFOLLOW | (last ? OPEN_FLAGS : O_PATH | O_DIRECTORY | O_CLOEXEC));
        int code = errno;
        close(at);
        errno = code;
        if (last) return next;
        at = next;
        part += n;
    }
    return -1;
}

static int resolve(int folder, const char *location) {
    struct open_how how = {.flags = OPEN_FLAGS,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd;
    int tries = 0;
    do fd = syscall(SYS_openat2, folder, location, &how, sizeof how);
    while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < 100)));
    return (int)fd;
}

static braid_status open_beneath(const char *root, const char *location, bool kernel, file **out, braid_error *err) {
    *out = NULL;
    TRY(location_check(location, err));
    int folder = root_open(root);
    if (folder < 0) return error_set(err, BRAID_IO, "%s: %s", root, strerror(errno));
    int fd = kernel ? resolve(folder, location) : -1;
    /* EPERM: system call filters of containers that predate openat2 */
    if (!kernel || (fd < 0 && (errno == ENOSYS || errno == EPERM))) fd = walk(folder, location);
    int code = errno;
    close(folder);
    if (fd >= 0) return file_adopt(fd, location, true, out, err);
    if (code == ELOOP || code == EXDEV)
        return error_set(err, BRAID_MODEL, "file location '%.200s' passes a link", location);
    return error_set(err, BRAID_IO, "%.200s: %s", location, strerror(code));
}

braid_status file_open_beneath(const char *root, const char *location, file **out, braid_error *err) {
    return open_beneath(root, location, true, out, err);
}

braid_status file_open_walk(const char *root, const char *location, file **out, braid_error *err) {
    return open_beneath(root, location, false, out, err);
}

file *file_ref(file *f) {
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void file_unref(file *f) {
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;
    if (f->fd >= 0) close(f->fd);
    mem_free(f);
}

uint64_t file_size(const file *f) {
    return f->size;
}

braid_status file_read(file *f, uint64_t offset, void *out, size_t bytes, braid_error *err) {
    if (offset > f->size || bytes > f->size - offset)
        return error_set(err, BRAID_IO, "file of %llu bytes: nothing at %llu + %zu", (unsigned long long)f->size,
                         (unsigned long long)offset, bytes);
    if (f->fd < 0) {
        if (bytes) memcpy(out, f->memory + offset, bytes);
        return BRAID_OK;
    }
    for (uint8_t *to = out; bytes;) {
        ssize_t n = pread(f->fd, to, bytes < 1u << 30 ? bytes : 1u << 30, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_set(err, BRAID_IO, "read at %llu: %s", (unsigned long long)offset, strerror(errno));
        if (n == 0) return error_set(err, BRAID_IO, "file ended at %llu while it was read", (unsigned long long)offset);
        to += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return BRAID_OK;
}
