// A queue on the stack of the first thread. Its items are copied in pieces, its nodes come from the heaps of several
// threads, and one thread polls until there is an item.

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

template <typename T> class Queue {
public:
    void push(T value)
    {
        std::lock_guard<std::mutex> guard(lock);
        items.push_back(std::move(value));
        count.fetch_add(1, std::memory_order_release);
    }

    bool pop(T &value)
    {
        if (!count.load(std::memory_order_acquire)) {
            return false;
        }
        std::lock_guard<std::mutex> guard(lock);
        value = std::move(items.front());
        items.pop_front();
        count.fetch_sub(1, std::memory_order_relaxed);
        return true;
    }

private:
    std::mutex lock;
    std::deque<T> items;
    std::atomic<int> count{0};
};

int main()
{
    Queue<std::vector<int>> queue;
    std::thread producer([&] { queue.push({1, 2, 3}); });
    std::thread other([&] { queue.push({4}); });
    std::vector<int> got;
    int sum = 0;
    for (int left = 2; left > 0;) {
        if (queue.pop(got)) {
            for (int value : got) {
                sum += value;
            }
            left--;
        }
    }
    producer.join();
    other.join();
    return sum == 10 ? 0 : 1;
}
