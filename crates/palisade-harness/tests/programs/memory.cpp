// A block of C++ that is deleted while another thread uses it, and its correct twin.
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

struct Base {
    int value = 1;
    virtual ~Base() {}
};

struct Derived : Base {
    std::vector<int> numbers{1, 2, 3};
};

int main(int count, char **arguments)
{
    bool right = count > 1 && !std::strcmp(arguments[1], "right");
    auto shared = std::make_shared<Derived>();
    Base *plain = new Derived;
    std::thread reader([&, copy = shared] {
        if (right) {
            copy->value++;
        } else {
            plain->value++;
        }
    });
    shared.reset();
    delete plain;
    reader.join();
    return 0;
}
