/* A process of many threads: threads N ACTIVE. ACTIVE of them wake ten times a second and make a system call, the rest sleep.
   It prints its process number when all of them are there, and ends with its standard input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int active;

static void *body(void *index)
{
    while ((long)index < active) {
        usleep(100000);
        (void)!write(2, "", 0);
    }
    for (;;)
        pause();
    return NULL;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    active = atoi(words[2]);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (long index = 0; index < atol(words[1]) - 1; index++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, body, (void *)index) != 0)
            return 1;
    }
    printf("%d\n", getpid());
    fflush(stdout);
    return getchar() == EOF ? 0 : 0;
}
