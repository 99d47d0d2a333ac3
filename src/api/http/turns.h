#pragma once
// What waits, by client. Clients take turns: one item of each that has some, each client's in the order in which it
// came. So a client that asks for much waits for itself, and another waits for one item of it. Not for several threads.

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace berth::http {

template <class Item>
class Turns {
 public:
  void add(const std::string& client, Item item) {
    const auto [queue, fresh] = waiting_.try_emplace(client);
    if (fresh) turns_.push_back(client);
    queue->second.push_back(std::move(item));
    ++size_;
  }

  // Requires: something waits.
  Item take() {
    const auto queue = waiting_.find(turns_.front());
    Item item = std::move(queue->second.front());
    queue->second.pop_front();
    if (queue->second.empty())
      waiting_.erase(queue);
    else
      turns_.push_back(turns_.front());
    turns_.pop_front();
    --size_;
    return item;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t waiting_of(const std::string& client) const {
    const auto queue = waiting_.find(client);
    return queue == waiting_.end() ? 0 : queue->second.size();
  }

 private:
  std::map<std::string, std::deque<Item>> waiting_;  // no queue is empty
  std::deque<std::string> turns_;                    // the clients of waiting_, next first
  std::size_t size_ = 0;
};

}  // namespace berth::http
