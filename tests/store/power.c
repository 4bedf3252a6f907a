/* A disk that forgets: what was not synced is not there after the power cut.
 *
 * Loaded before the C library into a process that writes. Whenever the process
 * syncs a file of one folder, the file's content is copied to a second folder,
 * `data`; whenever it syncs the folder itself, the names that are in it then
 * are noted as empty files in a third, `names`. What a power cut leaves in the
 * worst case is each noted name with its last copied content.
 *
 * With POWER_LIES set, syncing a file whose name ends so does nothing: that is
 * a store that does not sync what it should, and the test must notice it. */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what) {
    perror(what);
    abort();
}

/* Copies by a rename, so that being killed half way leaves the older copy. */
static void copy(int from, const char *to) {
    static char block[1 << 16];
    char unfinished[PATH_MAX];
    snprintf(unfinished, sizeof unfinished, "%s/../unfinished", getenv("POWER_DATA"));
    int out = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0) fail("open copy");
    off_t at = 0;
    ssize_t got;
    while ((got = pread(from, block, sizeof block, at)) > 0) {
        if (write(out, block, got) != got) fail("write copy");
        at += got;
    }
    if (got < 0) fail("read original");
    close(out);
    if (rename(unfinished, to)) fail("rename copy");
}

static void note_names(const char *folder) {
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *names = opendir(getenv("POWER_NAMES"));
    while (names && (entry = readdir(names))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (access(path, F_OK)) {
            snprintf(path, sizeof path, "%s/%s", getenv("POWER_NAMES"), entry->d_name);
            unlink(path);
            snprintf(path, sizeof path, "%s/%s", getenv("POWER_DATA"), entry->d_name);
            unlink(path);
        }
    }
    if (names) closedir(names);
    DIR *files = opendir(folder);
    while (files && (entry = readdir(files))) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", getenv("POWER_NAMES"), entry->d_name);
        close(open(path, O_WRONLY | O_CREAT, 0600));
    }
    if (files) closedir(files);
}

static int synced(int file) {
    char link[64], path[PATH_MAX], to[PATH_MAX];
    const char *folder = getenv("POWER_FOLDER");
    const char *lies = getenv("POWER_LIES");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length < 0) return 0;
    path[length] = 0;
    size_t prefix = strlen(folder);
    if (strncmp(path, folder, prefix)) return 0;
    pthread_mutex_lock(&one_at_a_time);
    if (path[prefix] == 0) {
        note_names(folder);
    } else if (path[prefix] == '/' && access(path, F_OK) == 0) {
        size_t tail = lies ? strlen(lies) : 0;
        int lie = tail && (size_t)length > tail && !strcmp(path + length - tail, lies);
        snprintf(to, sizeof to, "%s%s", getenv("POWER_DATA"), path + prefix);
        /* The process may have opened it for writing only. */
        int readable = lie ? -1 : open(path, O_RDONLY);
        if (readable >= 0) {
            copy(readable, to);
            close(readable);
        }
    }
    pthread_mutex_unlock(&one_at_a_time);
    return 0;
}

int fsync(int file) { return synced(file); }
int fdatasync(int file) { return synced(file); }
