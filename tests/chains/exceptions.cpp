// Places from which a C++ program may allocate: beside exceptions, in callbacks of templates, before main.
#include "look.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {
struct Looks {
    Looks() { look(); }
    ~Looks() { look(); }
};
Looks before_main;

__attribute__((noinline)) void throws(int depth) {
    Looks local;
    if (depth == 0)
        throw std::runtime_error("found");
    throws(depth - 1);
}

struct Shape {
    virtual ~Shape() { look(); }
    virtual void draw(int times) {
        if (times > 0)
            draw(times - 1);
        look();
    }
};
struct Round : Shape {
    void draw(int times) override {
        Shape::draw(times);
        look();
    }
};
} // namespace

int main() {
    try {
        throws(4);
    } catch (const std::exception &) {
        look();
    }
    std::vector<int> numbers{5, 3, 4, 1, 2};
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
        look();
        return a < b;
    });
    std::map<std::string, std::function<void()>> calls{{"a", [] { look(); }}, {"b", [] { Round().draw(2); }}};
    for (auto &call : calls)
        call.second();
    std::thread([] {
        try {
            throws(2);
        } catch (...) {
            look();
        }
    }).join();
    return 0;
}
