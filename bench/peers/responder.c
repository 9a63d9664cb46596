/* The minimal HTTP/1.1 server that load generators are measured against: so cheap that it is not the limit, and a witness of
   what reached it and when. One thread, one epoll; it answers every request with the same bytes and keeps connections open. It
   reads of a request only where it ends, so requests with a body are not for it. Several share a port, one a core.
   Usage: responder PORT CPU EXPECTED STAMPS. Port 0 takes a free one; the first line on stdout is "listening PORT". On SIGTERM it
   prints what it saw as JSON: requests, connections, the seconds from the first connection to the EXPECTED-th. STAMPS is a file
   for the kernel's receive time of every request (8 bytes each, nanoseconds since 1970), or "-". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 512
#define SOCKETS 65536
#define AT_ONCE 64 /* answers that go out with one call at most */

/* Something to capture and to check. */
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"
                             "Content-Length: 13\r\n\r\n{\"token\":42}\n";
#define ANSWER (sizeof answer - 1)

static char answers[AT_ONCE * ANSWER];
static unsigned char seen[SOCKETS];  /* how much of the empty line that ends a request has come */
static size_t owed[SOCKETS];         /* bytes of answers that are still to be sent */
static unsigned char waits[SOCKETS]; /* whether the kernel is asked to say when there is room again */
static uint64_t *stamps, *accepted;
static size_t requests, connections, stamps_room, accepted_room;

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static void keep(uint64_t **list, size_t *room, size_t at, uint64_t value) {
    if (at == *room) {
        *room = *room ? 2 * *room : 4096;
        *list = realloc(*list, *room * sizeof **list);
        if (!*list) fail("realloc");
    }
    (*list)[at] = value;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void drop(int epoll, int fd) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
}

static void take(int epoll, int listener) {
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (fd >= SOCKETS || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) fail("a connection");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        seen[fd] = 0, owed[fd] = 0, waits[fd] = 0;
        keep(&accepted, &accepted_room, connections++, now_ns());
    }
}

/* Sends what is owed; what is left of an answer that was cut short comes first. */
static void pay(int epoll, int fd) {
    int had_to_wait = 0;
    while (owed[fd] > 0) {
        size_t cut_short = owed[fd] % ANSWER, start = cut_short ? ANSWER - cut_short : 0;
        size_t length = owed[fd] < sizeof answers - start ? owed[fd] : sizeof answers - start;
        ssize_t sent = send(fd, answers + start, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            had_to_wait = 1;
            break;
        }
        if (sent < 0) {
            drop(epoll, fd);
            return;
        }
        owed[fd] -= (size_t)sent;
    }
    struct epoll_event event = {.events = had_to_wait ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.fd = fd};
    if (waits[fd] != had_to_wait) epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
    waits[fd] = (unsigned char)had_to_wait;
}

static void serve(int epoll, int fd, int is_stamped) {
    static char buffer[1 << 14];
    char control[64];
    struct iovec into = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = is_stamped ? recvmsg(fd, &message, 0) : recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        drop(epoll, fd);
        return;
    }
    uint64_t stamp = 0;
    struct cmsghdr *part = is_stamped ? CMSG_FIRSTHDR(&message) : NULL;
    if (part && part->cmsg_type == SCM_TIMESTAMPNS) {
        struct timespec t;
        memcpy(&t, CMSG_DATA(part), sizeof t);
        stamp = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    }
    for (ssize_t i = 0; i < got; i++) {
        char wanted = seen[fd] % 2 ? '\n' : '\r';
        seen[fd] = buffer[i] == wanted ? seen[fd] + 1 : buffer[i] == '\r';
        if (seen[fd] < 4) continue;
        seen[fd] = 0;
        owed[fd] += ANSWER;
        if (is_stamped) keep(&stamps, &stamps_room, requests, stamp);
        requests++;
    }
    pay(epoll, fd);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: responder PORT CPU EXPECTED STAMPS\n");
        return 2;
    }
    int on = 1, cpu = atoi(argv[2]), is_stamped = strcmp(argv[4], "-") != 0;
    size_t expected = strtoul(argv[3], NULL, 10);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    socklen_t length = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < AT_ONCE; i++) memcpy(answers + i * ANSWER, answer, ANSWER);

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int end = signalfd(-1, &ends, 0), epoll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (end < 0 || epoll < 0 || listener < 0) fail("setup");
    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    /* Of several at one port the one on the client's core gets the connection. */
    setsockopt(listener, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof cpu);
    if (is_stamped) setsockopt(listener, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 16384) < 0) fail("listen");
    if (getsockname(listener, (struct sockaddr *)&at, &length) < 0) fail("getsockname");
    int watched[2] = {listener, end};
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = watched[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, watched[i], &event) < 0) fail("epoll_ctl");
    }
    printf("listening %d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int e = 0; e < ready; e++) {
            int fd = events[e].data.fd;
            if (fd == listener) {
                take(epoll, listener);
            } else if (fd == end) {
                FILE *file = is_stamped ? fopen(argv[4], "w") : NULL;
                if (is_stamped && (!file || fwrite(stamps, 8, requests, file) != requests || fclose(file))) fail(argv[4]);
                printf("{\"requests\":%zu,\"connections\":%zu", requests, connections);
                if (expected && connections >= expected)
                    printf(",\"connected_seconds\":%.6f", (double)(accepted[expected - 1] - accepted[0]) / 1e9);
                printf("}\n");
                return 0;
            } else {
                serve(epoll, fd, is_stamped);
            }
        }
    }
}
