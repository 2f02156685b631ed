// One-time initialisation whose function throws an exception before it is done.
#include <cassert>
#include <mutex>
#include <thread>

static std::once_flag once;
static int calls, done;

static void initialise()
{
    if (calls++ == 0) {
        throw 1;
    }
    done = 1;
}

static void part()
{
    try {
        std::call_once(once, initialise);
        assert(done);
    } catch (int) {
    }
}

int main()
{
    std::thread other(part);
    part();
    other.join();
    assert(calls == 2 && done);
}
