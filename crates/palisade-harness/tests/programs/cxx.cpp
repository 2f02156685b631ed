// The parts of the C++ standard library that threads use, used correctly.

#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#if __cplusplus >= 202002L
#include <barrier>
#include <latch>
#include <semaphore>
#endif

static std::atomic<int> destroyed;

struct Local {
    int value = 1;
    ~Local() { destroyed++; }
};
static thread_local Local local;

struct Once {
    static int made;
    Once() { made++; }
};
int Once::made;

static Once &once()
{
    static Once single;
    return single;
}

struct Shape {
    virtual ~Shape() = default;
    virtual int sides() const { return 0; }
};
struct Square : Shape {
    int sides() const override { return 4; }
};

template <class T> class Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<T> items;

public:
    void push(T item)
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            items.push_back(std::move(item));
        }
        changed.notify_one();
    }
    T pop()
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return !items.empty(); });
        T item = std::move(items.back());
        items.pop_back();
        return item;
    }
};

int main()
{
    // Threads, queues, thread-local objects, statics, exceptions.
    Queue<std::string> queue;
    std::thread producer([&] {
        for (int i = 0; i < 3; i++) {
            queue.push("item " + std::to_string(i));
        }
        assert(local.value == 1);
        once();
    });
    std::thread consumer([&] {
        for (int i = 0; i < 3; i++) {
            assert(queue.pop().substr(0, 5) == "item ");
        }
        local.value++;
        once();
        try {
            throw std::runtime_error("thrown");
        } catch (const std::exception &error) {
            assert(std::string(error.what()) == "thrown");
        }
    });
    producer.join();
    consumer.join();
    assert(destroyed == 2 && Once::made == 1);

    // Futures, also with exceptions.
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread keeper([&] { promise.set_value(42); });
    assert(future.get() == 42);
    keeper.join();
    auto task = std::async(std::launch::async, []() -> int { throw std::logic_error("no"); });
    try {
        task.get();
        assert(false);
    } catch (const std::logic_error &) {
    }

    // Shared mutexes and one-time initialisation.
    std::shared_mutex shared;
    std::once_flag flag;
    int value = 0, calls = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) {
        threads.emplace_back([&] {
            std::call_once(flag, [&] { calls++; });
            std::unique_lock<std::shared_mutex> lock(shared);
            value++;
        });
    }
    threads.emplace_back([&] {
        std::shared_lock<std::shared_mutex> lock(shared);
        assert(value <= 2);
    });
    for (auto &thread : threads) {
        thread.join();
    }
    assert(value == 2 && calls == 1);

    // Waits with a timeout.
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock<std::mutex> lock(mutex);
    auto start = std::chrono::steady_clock::now();
    assert(never.wait_for(lock, std::chrono::hours(1)) == std::cv_status::timeout);
    assert(std::chrono::steady_clock::now() - start >= std::chrono::hours(1));
    std::this_thread::sleep_for(std::chrono::hours(10));

    // Shared pointers and virtual functions.
    std::shared_ptr<Shape> shape = std::make_shared<Square>();
    std::thread user([copy = shape] { assert(copy->sides() == 4); });
    shape.reset();
    user.join();

#if __cplusplus >= 202002L
    std::latch latch(2);
    std::barrier barrier(2);
    std::counting_semaphore<4> semaphore(0);
    std::atomic<int> notified = 0;
    std::jthread other([&] {
        latch.count_down();
        barrier.arrive_and_wait();
        semaphore.release();
        notified = 1;
        notified.notify_one();
    });
    latch.arrive_and_wait();
    barrier.arrive_and_wait();
    semaphore.acquire();
    notified.wait(0);
    assert(notified == 1);
#endif
    return 0;
}
