// Lets a program load its libraries once for many runs (tests/support/loaded_program.py): FFmpeg has two hundred, which
// take most of what a test of small films computes. Preloaded by the loader (LD_PRELOAD), it has every run that is
// asked for through a socket in a fork, from main() on.

#define _GNU_SOURCE  // RTLD_NEXT
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Main(int, char**, char**);
typedef int Start(Main*, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);

enum { kMostBytes = 1 << 16, kMostWords = 1 << 10, kStandardStreams = 3 };

static Main* program_main;
static char request[kMostBytes];  // the folder and the command line, with a 0 behind each

// One run, in the child: what main() returns is the exit code.
static int run(ssize_t bytes, const int* streams, int requests) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < kStandardStreams; ++i) {
    dup2(streams[i], i);
    close(streams[i]);
  }
  close(requests);
  char* words[kMostWords + 1];
  int count = 0;
  for (char* word = request; word < request + bytes && count < kMostWords; word += strlen(word) + 1)
    words[count++] = word;
  words[count] = NULL;
  if (chdir(words[0]) != 0) _exit(126);
  return program_main(count - 1, words + 1, environ);
}

// In the program's main(): answers every request with the child's number, and with its status at its end.
static int serve(int argc, char** argv, char** environment) {
  (void)argc, (void)argv, (void)environment;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int requests = atoi(getenv("TRIVELET_REQUESTS"));
  const char* module = getenv("TRIVELET_PRELOADED_MODULE");
  if (module != NULL && dlopen(module, RTLD_NOW | RTLD_LOCAL) == NULL) fprintf(stderr, "%s\n", dlerror());
  unsetenv("TRIVELET_REQUESTS");
  unsetenv("TRIVELET_PRELOADED_MODULE");
  unsetenv("LD_PRELOAD");
  for (;;) {
    int streams[kStandardStreams];
    char control[CMSG_SPACE(sizeof streams)];
    struct iovec text = {request, sizeof request - 1};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    const ssize_t bytes = recvmsg(requests, &message, 0);
    const struct cmsghdr* first = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (first == NULL) _exit(0);
    memcpy(streams, CMSG_DATA(first), sizeof streams);
    const pid_t child = fork();
    if (child == 0) return run(bytes, streams, requests);
    for (int i = 0; i < kStandardStreams; ++i) close(streams[i]);
    int answer = child;
    send(requests, &answer, sizeof answer, 0);
    if (child > 0) waitpid(child, &answer, 0);
    send(requests, &answer, sizeof answer, 0);
  }
}

// What the C library's start code calls, with the program's main().
int __libc_start_main(Main* program, int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*end_of_loader)(void), void* end_of_stack) {
  Start* start;
  *(void**)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  program_main = program;
  return start(getenv("TRIVELET_REQUESTS") != NULL ? serve : program, argc, argv, init, fini, end_of_loader,
               end_of_stack);
}
