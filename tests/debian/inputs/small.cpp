#include <map>
#include <string>
#include <vector>
int use(const std::vector<std::string> &words) {
    std::map<std::string, int> count;
    for (const auto &word : words)
        count[word]++;
    return static_cast<int>(count.size());
}
