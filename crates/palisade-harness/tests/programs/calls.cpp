// Functions of the C++ library that touch containers of the program.
#include <iostream>
#include <list>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>

static std::mutex mutex;
static std::map<int, int> tree;
static std::unordered_map<int, int> table;

static void run(const std::string &name, int thread)
{
    std::lock_guard<std::mutex> guard(mutex);
    if (name == "tree") {
        tree[thread] = 1;
    } else if (name == "table") {
        table[thread] = 1;
    } else {
        std::cout << "thread " << thread << std::endl;
        try {
            throw std::runtime_error("nothing");
        } catch (const std::exception &) {
        }
    }
}

int main(int count, char **arguments)
{
    std::string name = count > 1 ? arguments[1] : "";
    std::thread other([&] { run(name, 1); });
    run(name, 2);
    other.join();
    return 0;
}
