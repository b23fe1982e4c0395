/*
 * cache.c: the pipeline cache's file. What lies there is untrusted: drivers copy it without a check, so nothing of it
 * reaches the driver unless every byte is as it was written by this build of braid for this device and driver.
 *
 *   [header: magic, format, sizes, identity, checksum of the data, checksum of the header][data]
 *
 * The file is replaced by rename, so a reader sees an old or a new one and never half of one.
 */
#include "gpu/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct cache_header {
    char magic[8];
    uint32_t format, header_bytes;
    uint64_t data_bytes;
    gpu_cache_identity identity;
    uint64_t data_hash;
    uint64_t header_hash; /* of everything above */
} cache_header;
_Static_assert(sizeof(gpu_cache_identity) == 16 + 8 + 16 + 32, "no padding");
_Static_assert(sizeof(cache_header) == 24 + sizeof(gpu_cache_identity) + 16, "no padding");

enum { CACHE_FORMAT = 1, CACHE_LARGEST = 512 << 20 };
static const char cache_magic[8] = "braid\r\n\x1a";

static cache_header header_for(const gpu_cache_identity *identity, const void *data, size_t bytes) {
    cache_header h = {.format = CACHE_FORMAT,
                      .header_bytes = sizeof h,
                      .data_bytes = bytes,
                      .identity = *identity,
                      .data_hash = hash_bytes(CACHE_FORMAT, data, bytes)};
    memcpy(h.magic, cache_magic, sizeof h.magic);
    h.header_hash = hash_bytes(CACHE_FORMAT, &h, offsetof(cache_header, header_hash));
    return h;
}

/* The driver's own header, as the Vulkan specification lays it out. */
static bool driver_header_fits(const void *data, size_t bytes, const gpu_cache_identity *identity) {
    struct {
        uint32_t size, version, vendor, device;
        uint8_t uuid[16];
    } own;
    if (bytes < sizeof own) return false;
    memcpy(&own, data, sizeof own);
    return own.size >= sizeof own && own.size <= bytes && own.version == 1 && own.vendor == identity->vendor &&
           own.device == identity->device && memcmp(own.uuid, identity->cache_uuid, sizeof own.uuid) == 0;
}

const void *gpu_cache_verify(const void *stored, size_t bytes, const gpu_cache_identity *identity, size_t *data_bytes) {
    cache_header h;
    if (bytes <= sizeof h || bytes > CACHE_LARGEST) return NULL;
    const void *data = (const uint8_t *)stored + sizeof h;
    cache_header expected = header_for(identity, data, bytes - sizeof h);
    memcpy(&h, stored, sizeof h);
    if (memcmp(&h, &expected, sizeof h) != 0 || !driver_header_fits(data, bytes - sizeof h, identity)) return NULL;
    *data_bytes = bytes - sizeof h;
    return data;
}

void *gpu_cache_read(const char *path, const gpu_cache_identity *identity, const void **data, size_t *bytes) {
    *data = NULL;
    *bytes = 0;
    file *f = NULL;
    if (file_open(path, &f, NULL)) return NULL;
    uint64_t size = file_size(f);
    void *content = size <= CACHE_LARGEST ? mem_alloc((size_t)size) : NULL;
    if (content && !file_read(f, 0, content, (size_t)size, NULL))
        *data = gpu_cache_verify(content, (size_t)size, identity, bytes);
    file_unref(f);
    if (*data) return content;
    mem_free(content);
    return NULL;
}

/* --------------------------------------------------------------------------------------------------- write */

static bool write_all(int fd, const void *bytes, size_t n) {
    for (const uint8_t *p = bytes; n;) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* Makes a rename durable; a file system that cannot do so is no error. */
static void sync_folder(const char *path) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* Opens NAME.tmp for this process alone. A file that a killed process left is taken over; while another process writes,
   EWOULDBLOCK. Links are refused: what is written here is nobody else's file. */
static int open_temporary(const char *name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600), code = EWOULDBLOCK;
    if (fd < 0) return fd;
    struct stat held, named;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &held) != 0)
        code = errno;
    else if (lstat(name, &named) != 0 || held.st_ino != named.st_ino)
        code = EWOULDBLOCK; /* renamed meanwhile */
    else if (!S_ISREG(held.st_mode) || held.st_nlink != 1)
        code = EMLINK;
    else if (ftruncate(fd, 0) != 0)
        code = errno;
    else
        return fd;
    close(fd);
    errno = code;
    return -1;
}

static bool write_file(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes) {
    char name[4160];
    int n = snprintf(name, sizeof name, "%s.tmp", path);
    if (n < 0 || (size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open_temporary(name);
    if (fd < 0) return false;
    bool ok = write_all(fd, head, head_bytes) && write_all(fd, data, bytes) && fsync(fd) == 0 && rename(name, path) == 0;
    int code = errno;
    if (!ok) unlink(name);
    close(fd); /* and with it the lock */
    errno = code;
    return ok;
}

bool gpu_cache_write(const char *path, const gpu_cache_identity *identity, const void *data, size_t bytes,
                     const logger *log) {
    cache_header h = header_for(identity, data, bytes);
    return gpu_cache_replace(path, &h, sizeof h, data, bytes, log);
}

bool gpu_cache_replace(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes,
                       const logger *log) {
    if (write_file(path, head, head_bytes, data, bytes)) {
        sync_folder(path);
        return true;
    }
    log_line(log, errno == EWOULDBLOCK ? BRAID_LOG_DEBUG : BRAID_LOG_WARN, "cache file '%s' was not written: %s", path,
             strerror(errno));
    return false;
}

/* -------------------------------------------------------------------------------------------------- folder */

static bool make_folders(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        int made = mkdir(path, 0700);
        *p = '/';
        if (made != 0 && errno != EEXIST) return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

bool gpu_cache_folder(const char *wanted, const logger *log, char *out, size_t capacity) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (wanted && *wanted)
        n = snprintf(out, capacity, "%s", wanted);
    else if (xdg && *xdg == '/')
        n = snprintf(out, capacity, "%s/braid", xdg);
    else if (home && *home == '/')
        n = snprintf(out, capacity, "%s/.cache/braid", home);
    if (n < 0 || (size_t)n >= capacity) {
        log_line(log, BRAID_LOG_INFO, "no folder for the pipeline cache");
        return false;
    }
    if (make_folders(out)) return true;
    log_line(log, BRAID_LOG_WARN, "pipeline cache folder '%s': %s", out, strerror(errno));
    return false;
}
