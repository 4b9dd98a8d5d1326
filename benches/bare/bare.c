/*
 * bare: the measurement loops without a tool around them. The bench compares thru with it to show what the system calls alone
 * allow. Both ends are this program:
 *
 *     bare server WORK TRANSPORT ADDRESS BLOCK FLOWS
 *     bare client WORK TRANSPORT ADDRESS BLOCK FLOWS SECONDS
 *
 * WORK: stream, sendfile, rr, rr-spin, crr, crowd-rr, crowd-stream. TRANSPORT: tcp, udp, unix, shm. ADDRESS: a port of
 * 127.0.0.1, or a path for unix and shm. The client prints one line of key=value: bytes and ns (as the receiver counted them) or
 * transactions and ns, and setup_ns for crowds.
 *
 * The loops read no clock and check only a flag that SIGALRM sets.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Events of one epoll_wait. */
#define EVENTS 512
/* Messages sent over a flow of a crowd's stream before the next flow. */
#define TURN 4

static volatile sig_atomic_t over;
static const char *transport, *endpoint;
static size_t block;
static int flows;
static int seconds;

static void end(int sig) { (void)sig; over = 1; }

static void die(const char *what) {
    fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Sets the flag after the seconds of a measurement, and again every 100 ms: a signal between the check of the flag and a
 * blocking call would be lost. Without SA_RESTART it also ends a blocking call. */
static void alarm_in(int s) {
    struct sigaction act = {.sa_handler = end};
    struct itimerval timer = {.it_value = {.tv_sec = s}, .it_interval = {.tv_usec = 100000}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Private pages, touched. */
static char *pages(size_t size) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    memset(memory, 't', size);
    return memory;
}

static int is(const char *name) { return strcmp(transport, name) == 0; }

static socklen_t address(struct sockaddr_storage *to) {
    memset(to, 0, sizeof *to);
    if (is("unix")) {
        struct sockaddr_un *un = (struct sockaddr_un *)to;
        un->sun_family = AF_UNIX;
        strncpy(un->sun_path, endpoint, sizeof un->sun_path - 1);
        return sizeof *un;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)to;
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in->sin_port = htons((uint16_t)atoi(endpoint));
    return sizeof *in;
}

static int new_socket(void) {
    int fd = socket(is("unix") ? AF_UNIX : AF_INET, is("udp") ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd < 0) die("socket");
    return fd;
}

static void no_delay(int fd) {
    int on = 1;
    if (is("tcp")) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* A listening socket, or a bound datagram socket. */
static int bound(void) {
    struct sockaddr_storage to;
    socklen_t size = address(&to);
    int fd = new_socket(), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&to, size) < 0) die("bind");
    if (!is("udp") && listen(fd, 4096) < 0) die("listen");
    return fd;
}

static int connected(void) {
    struct sockaddr_storage to;
    socklen_t size = address(&to);
    int fd = new_socket();
    while (connect(fd, (struct sockaddr *)&to, size) < 0)
        if (errno != EINTR && errno != ECONNREFUSED) die("connect");
    return fd;
}

/* The one connection of a server; a datagram socket is connected to the sender of the first datagram, which stays in it. */
static int accepted(int listener) {
    if (!is("udp")) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) die("accept");
        return fd;
    }
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    char byte;
    if (recvfrom(listener, &byte, 1, MSG_PEEK, (struct sockaddr *)&from, &size) < 0) die("recvfrom");
    if (connect(listener, (struct sockaddr *)&from, size) < 0) die("connect");
    return listener;
}

static void all_of(int fd, void *bytes, size_t size) {
    if (recv(fd, bytes, size, MSG_WAITALL) != (ssize_t)size) die("no answer");
}

static void print_rate(uint64_t bytes, uint64_t ns, int64_t setup) {
    printf("bytes=%llu ns=%llu", (unsigned long long)bytes, (unsigned long long)ns);
    if (setup) printf(" setup_ns=%lld", (long long)setup);
    printf("\n");
}

static void print_transactions(uint64_t count, int64_t ns, int64_t setup) {
    printf("transactions=%llu ns=%lld", (unsigned long long)count, (long long)ns);
    if (setup) printf(" setup_ns=%lld", (long long)setup);
    printf("\n");
}

/* ---- one stream ---- */

static void stream_server(void) {
    char *buffer = pages(block);
    int fd = accepted(bound());
    uint64_t tally[2] = {0, 0};
    int64_t start = 0, last = 0;
    ssize_t n;
    while ((n = recv(fd, buffer, block, 0)) > 0) {
        if (!start) start = now();
        tally[0] += (uint64_t)n;
        /* As in thru: reading the clock for each large piece costs 0.1 % of its copy. */
        if (n >= 4096) last = now();
    }
    if (!last) last = now();
    tally[1] = (uint64_t)(last - start);
    send(fd, tally, sizeof tally, 0);
}

static void stream_client(int with_file) {
    char *buffer = pages(block);
    int file = memfd_create("block", 0);
    if (with_file && (file < 0 || write(file, buffer, block) != (ssize_t)block)) die("memfd");
    int fd = connected();
    uint64_t tally[2];
    alarm_in(seconds);
    if (with_file) {
        while (!over) {
            off_t from = 0;
            if (sendfile(fd, file, &from, block) < 0 && errno != EINTR) die("sendfile");
        }
    } else {
        while (!over)
            if (send(fd, buffer, block, 0) < 0 && errno != EINTR) die("send");
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    shutdown(fd, SHUT_WR);
    all_of(fd, tally, sizeof tally);
    print_rate(tally[0], tally[1], 0);
}

/* ---- round trips over one socket ---- */

/* A whole message, with blocking or spinning calls; 0 when the other end has closed or the time is over. */
static inline int take(int fd, char *buffer, int flags) {
    size_t got = 0;
    while (got < block) {
        ssize_t n = recv(fd, buffer + got, block - got, flags);
        if (n > 0) got += (size_t)n;
        else if (n == 0 || over || errno == ECONNRESET) return 0;
        else if (errno != EAGAIN && errno != EINTR) die("recv");
    }
    return 1;
}

static inline int give(int fd, const char *buffer, int flags) {
    size_t gone = 0;
    while (gone < block) {
        ssize_t n = send(fd, buffer + gone, block - gone, flags);
        if (n > 0) gone += (size_t)n;
        else if (over || errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED) return 0;
        else if (errno != EAGAIN && errno != EINTR) die("send");
    }
    return 1;
}

static void rr_server(int flags) {
    char *buffer = pages(block);
    int fd = accepted(bound());
    no_delay(fd);
    while (take(fd, buffer, flags) && give(fd, buffer, flags)) {}
}

static void rr_client(int flags) {
    char *buffer = pages(block);
    int fd = connected();
    uint64_t count = 0;
    no_delay(fd);
    alarm_in(seconds);
    int64_t start = now();
    while (!over && give(fd, buffer, flags) && take(fd, buffer, flags)) count++;
    print_transactions(count, now() - start, 0);
}

/* ---- round trips through shared memory ---- */

struct way {
    _Alignas(128) _Atomic uint64_t number;
    char bytes[64];
};

static struct way *shared(int make) {
    char unready[4096];
    snprintf(unready, sizeof unready, "%s.new", endpoint);
    int fd = open(make ? unready : endpoint, make ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    if (fd < 0 || (make && ftruncate(fd, 2 * sizeof(struct way)) < 0)) die("shared memory");
    struct way *ways = mmap(NULL, 2 * sizeof *ways, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ways == MAP_FAILED) die("mmap");
    if (make && rename(unready, endpoint) < 0) die("rename");
    return ways;
}

/* Writes a message of up to 64 bytes, then its number, which the other end polls. */
static void shm_server(void) {
    struct way *ways = shared(1);
    char buffer[64];
    for (uint64_t n = 1;; n++) {
        while (atomic_load_explicit(&ways[0].number, memory_order_acquire) != n) {}
        memcpy(buffer, ways[0].bytes, block);
        memcpy(ways[1].bytes, buffer, block);
        atomic_store_explicit(&ways[1].number, n, memory_order_release);
    }
}

static void shm_client(void) {
    struct way *ways = shared(0);
    char buffer[64] = {0};
    uint64_t n = 0;
    alarm_in(seconds);
    int64_t start = now();
    while (!over) {
        n++;
        memcpy(ways[0].bytes, buffer, block);
        atomic_store_explicit(&ways[0].number, n, memory_order_release);
        while (atomic_load_explicit(&ways[1].number, memory_order_acquire) != n && !over) {}
        memcpy(buffer, ways[1].bytes, block);
    }
    print_transactions(n, now() - start, 0);
}

/* ---- a connection for each transaction ---- */

static void crr_server(void) {
    char *buffer = pages(block);
    int listener = bound();
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) die("accept");
        if (take(fd, buffer, 0)) give(fd, buffer, 0);
        close(fd);
    }
}

static void crr_client(void) {
    char *buffer = pages(block);
    char last;
    uint64_t count = 0;
    alarm_in(seconds);
    int64_t start = now();
    while (!over) {
        int fd = connected();
        /* The other end closes first, so that ports in TIME_WAIT are not ours. */
        if (give(fd, buffer, 0) && take(fd, buffer, 0) && recv(fd, &last, 1, 0) == 0) count++;
        close(fd);
    }
    print_transactions(count, now() - start, 0);
}

/* ---- many flows in one thread ---- */

static void raise_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void watch(int set, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

/* Answers or receives until all connections are closed. */
static void crowd_server(int stream) {
    raise_limit();
    char *buffer = pages(block);
    int listener = bound(), set = epoll_create1(0), control = -1, open = 0;
    uint64_t tally[2] = {0, 0};
    int64_t first = 0;
    struct epoll_event events[EVENTS];
    watch(set, listener, EPOLLIN);
    for (;;) {
        int n = epoll_wait(set, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                fd = accept(listener, NULL, NULL);
                if (fd < 0) die("accept");
                no_delay(fd);
                /* The first connection carries the figures at the end. */
                if (control < 0) control = fd;
                else { watch(set, fd, EPOLLIN); open++; }
                continue;
            }
            ssize_t got = recv(fd, buffer, block, MSG_DONTWAIT);
            if (got > 0 && stream) {
                if (!first) first = now();
                tally[0] += (uint64_t)got;
            } else if (got > 0) {
                if (send(fd, buffer, (size_t)got, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET) die("send");
            } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
                close(fd);
                if (--open == 0) {
                    tally[1] = (uint64_t)(first ? now() - first : 0);
                    send(control, tally, sizeof tally, 0);
                    return;
                }
            }
        }
    }
}

static void crowd_client(int stream) {
    raise_limit();
    char *buffer = pages(block);
    int *fds = calloc((size_t)flows, sizeof *fds);
    int64_t before = now();
    int control = connected(), set = epoll_create1(0);
    for (int i = 0; i < flows; i++) {
        fds[i] = connected();
        no_delay(fds[i]);
        watch(set, fds[i], stream ? EPOLLOUT : EPOLLIN);
    }
    int64_t setup = now() - before;
    uint64_t count = 0, tally[2];
    struct epoll_event events[EVENTS];
    alarm_in(seconds);
    int64_t start = now();
    if (!stream)
        for (int i = 0; i < flows; i++)
            if (send(fds[i], buffer, block, 0) < 0) die("send");
    while (!over) {
        int n = epoll_wait(set, events, EVENTS, -1);
        for (int i = 0; i < n && !over; i++) {
            int fd = events[i].data.fd;
            if (stream) {
                for (int turn = 0; turn < TURN && send(fd, buffer, block, MSG_DONTWAIT) == (ssize_t)block; turn++) {}
            } else if (recv(fd, buffer, block, MSG_DONTWAIT) > 0) {
                count++;
                if (send(fd, buffer, block, 0) < 0) die("send");
            }
        }
    }
    int64_t ns = now() - start;
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    for (int i = 0; i < flows; i++) close(fds[i]);
    all_of(control, tally, sizeof tally);
    if (stream) print_rate(tally[0], tally[1], setup);
    else print_transactions(count, ns, setup);
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "bare server|client WORK TRANSPORT ADDRESS BLOCK FLOWS [SECONDS]\n");
        return 2;
    }
    const char *work = argv[2];
    int server = strcmp(argv[1], "server") == 0;
    transport = argv[3];
    endpoint = argv[4];
    block = strtoull(argv[5], NULL, 10);
    flows = atoi(argv[6]);
    seconds = argc > 7 ? atoi(argv[7]) : 1;
    signal(SIGPIPE, SIG_IGN);
    if (is("shm") && block > sizeof ((struct way *)0)->bytes) {
        fprintf(stderr, "bare: over shm a message has at most 64 bytes\n");
        return 2;
    }
    if (strcmp(work, "stream") == 0) server ? stream_server() : stream_client(0);
    else if (strcmp(work, "sendfile") == 0) server ? stream_server() : stream_client(1);
    else if (strcmp(work, "rr-spin") == 0 && is("shm")) server ? shm_server() : shm_client();
    else if (strcmp(work, "rr") == 0) server ? rr_server(0) : rr_client(0);
    else if (strcmp(work, "rr-spin") == 0) server ? rr_server(MSG_DONTWAIT) : rr_client(MSG_DONTWAIT);
    else if (strcmp(work, "crr") == 0) server ? crr_server() : crr_client();
    else if (strcmp(work, "crowd-rr") == 0) server ? crowd_server(0) : crowd_client(0);
    else if (strcmp(work, "crowd-stream") == 0) server ? crowd_server(1) : crowd_client(1);
    else {
        fprintf(stderr, "bare: no work is called '%s'\n", work);
        return 2;
    }
    return 0;
}
