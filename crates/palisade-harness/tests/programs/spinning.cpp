// Threads that capture the locals of `main` by reference, and wait in loops.
#include <atomic>
#include <thread>

int main()
{
    std::atomic<int> turn{0};
    std::atomic<bool> lock{false};
    int counter = 0;
    std::thread first([&] {
        bool expected = false;
        while (!lock.compare_exchange_weak(expected, true)) {
            expected = false;
        }
        counter++;
        lock.store(false, std::memory_order_release);
        turn.store(1);
    });
    std::thread second([&] {
        while (lock.exchange(true)) {
        }
        counter++;
        lock.store(false);
        while (turn.load() != 1) {
        }
    });
    while (turn.load() != 1) {
    }
    first.join();
    second.join();
    return counter == 2 ? 0 : 1;
}
