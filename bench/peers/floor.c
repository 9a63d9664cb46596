/* The floor: what a closed-model load generator cannot do without. N connections, one epoll, one send and one receive
   a request, no parsing beyond counting the bytes of answers that are all equally long (the length is learnt from the
   first). What a tool needs more than this is its own. Every request sent is waited for, so that its count is the
   server's too.
   Usage: floor PORT CONNECTIONS SECONDS. Prints {"completed":N}. */
#define _GNU_SOURCE /* strcasestr */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 512

static char request[128];
static size_t request_bytes;
static char buffer[1 << 16];

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_connection(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void ask(int fd) {
    if (send(fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) fail("send");
}

/* Length of one answer with its header, from a whole one. */
static long learn(int fd) {
    size_t have = 0;
    ask(fd);
    for (;;) {
        ssize_t got = recv(fd, buffer + have, sizeof buffer - 1 - have, 0);
        if (got <= 0) fail("first answer");
        have += (size_t)got;
        buffer[have] = 0;
        char *end = strstr(buffer, "\r\n\r\n");
        if (!end) continue;
        char *length = strcasestr(buffer, "\r\nContent-Length:");
        if (!length || length > end) {
            fprintf(stderr, "the answer has no Content-Length\n");
            exit(2);
        }
        long whole = (end + 4 - buffer) + atol(length + strlen("\r\nContent-Length:"));
        if ((long)have >= whole) return whole;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: floor PORT CONNECTIONS SECONDS\n");
        return 2;
    }
    int port = atoi(argv[1]), connections = atoi(argv[2]);
    double seconds = atof(argv[3]);
    request_bytes = (size_t)snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);

    int epoll = epoll_create1(0), *fds = calloc((size_t)connections, sizeof *fds);
    long *missing = calloc((size_t)connections, sizeof *missing);
    if (epoll < 0 || !fds || !missing) fail("setup");
    for (int i = 0; i < connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        fds[i] = open_connection(port);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0) fail("epoll_ctl");
    }
    long answer_bytes = learn(fds[0]);
    unsigned long completed = 1;
    int waiting = connections;
    double end = now() + seconds;
    for (int i = 0; i < connections; i++) {
        missing[i] = answer_bytes;
        ask(fds[i]);
    }
    while (waiting > 0) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, 1000);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        int go_on = now() < end;
        for (int e = 0; e < ready; e++) {
            unsigned i = events[e].data.u32;
            ssize_t got = recv(fds[i], buffer, sizeof buffer, 0);
            if (got <= 0) fail("recv");
            missing[i] -= got;
            if (missing[i] > 0) continue;
            completed++;
            if (go_on) {
                missing[i] = answer_bytes;
                ask(fds[i]);
            } else {
                waiting--;
            }
        }
    }
    printf("{\"completed\":%lu}\n", completed);
    return 0;
}
