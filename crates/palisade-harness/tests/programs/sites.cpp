/* Findings inside functions of the C++ library, and inside functions of a header of the program. */
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string.h>
#include <thread>
#include <utility>
#include <vector>
#include "sites.h"

static std::atomic<int> a, b;
static std::mutex m, n;
static std::condition_variable never;
static int plain, other;

/* A C++ exception leaves functions of the library early. */
static void throws()
{
    try {
        std::vector<int> empty;
        empty.at(3) = 1;
    } catch (const std::out_of_range &) {
    }
}

/* Two stores that can wait in their buffers: two call sites of one function. */
static void buffering()
{
    int r = 0, s = 0;
    std::thread first([&] {
        throws();
        a.store(1, std::memory_order_relaxed);
        r = b.load(std::memory_order_relaxed);
    });
    std::thread second([&] {
        b.store(1, std::memory_order_relaxed);
        s = a.load(std::memory_order_relaxed);
    });
    first.join();
    second.join();
}

/* Two races through one function of the library. */
static void races()
{
    std::thread first([] {
        plain = std::exchange(other, 1);
    });
    other = 2;
    plain = 2;
    first.join();
    std::thread second([] {
        std::swap(plain, other);
    });
    std::swap(plain, other);
    second.join();
}

static void deadlock()
{
    std::thread first([] {
        std::lock_guard<std::mutex> one(m);
        std::lock_guard<std::mutex> two(n);
    });
    n.lock();
    m.lock();
    m.unlock();
    n.unlock();
    first.join();
}

/* Waits inside of precompiled functions of the library. */
static void waits()
{
    std::thread first([] {
        std::unique_lock<std::mutex> lock(m);
        never.wait(lock);
    });
    std::future<void> second = std::async(std::launch::async, [] {});
    second.wait();
    first.join();
}

/* The program's own header is not a library. */
static void header()
{
    std::thread first([] { set(&plain, 1); });
    set(&plain, 2);
    first.join();
}

/* The last things that functions of threads do. Precompiled functions of the library call these functions. */
static std::atomic<std::atomic<int> *> block;

static void ends()
{
    block = new std::atomic<int>(0);
    std::thread first([] { block.load()->store(3, std::memory_order_relaxed); });
    std::thread second([] { delete block.load(); });
    first.join();
    second.join();
}

/* A crash inside the library. */
static void crash()
{
    std::atomic<int> *volatile nothing = nullptr;
    nothing->store(1);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    if (!strcmp(how, "buffering")) {
        buffering();
    } else if (!strcmp(how, "races")) {
        races();
    } else if (!strcmp(how, "deadlock")) {
        deadlock();
    } else if (!strcmp(how, "waits")) {
        waits();
    } else if (!strcmp(how, "header")) {
        header();
    } else if (!strcmp(how, "ends")) {
        ends();
    } else if (!strcmp(how, "crash")) {
        crash();
    }
    return 0;
}
