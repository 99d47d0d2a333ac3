// The control plane under load: durable submissions from concurrent HTTP clients, the syncs they cost, and the restart
// with a hundred thousand live jobs. Starts the real `berth serve` beside it and prints one JSON object.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "control/iteration.h"
#include "store/event_codec.h"
#include "store/sqlite_log.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kClients = 16;
constexpr int kLiveJobs = 100'000;
constexpr int kQueues = 50;

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "bench control: " << why << "\n";
  std::exit(1);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A server process on a data directory; stopped by SIGKILL, so that nothing is written for the benchmark's sake.
class ServerProcess {
 public:
  ServerProcess(const std::string& berth, const fs::path& data, const std::string& config, int fsync_delay_ms) {
    const fs::path ready = data.string() + ".ready";
    fs::remove(ready);
    begin_ = Clock::now();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::vector<std::string> words = {berth,
                                        "serve",
                                        "--no-node",
                                        "--rate-limit",
                                        "none",
                                        "--data",
                                        data,
                                        "--ready-file",
                                        ready,
                                        "--fsync-delay-ms",
                                        std::to_string(fsync_delay_ms)};
      if (!config.empty()) words.insert(words.end(), {"--config", config});
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
      ::execv(berth.c_str(), argv.data());
      ::_exit(127);
    }
    while (!fs::exists(ready)) {
      if (::waitpid(pid_, nullptr, WNOHANG) != 0) give_up("the server ended before it was ready");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ready_after_s_ = seconds_since(begin_);
    std::string url;
    std::ifstream(ready) >> url;
    port_ = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    std::ifstream(data / "token") >> token_;
  }
  ~ServerProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  double ready_after_s() const { return ready_after_s_; }
  std::uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }
  std::int64_t resident_bytes() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/statm");
    std::int64_t total = 0;
    std::int64_t resident = 0;
    status >> total >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  }

 private:
  Clock::time_point begin_;
  double ready_after_s_ = 0;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
  std::string token_;
};

// One HTTP client with one connection.
class HttpConnection {
 public:
  explicit HttpConnection(const ServerProcess& server) : token_(server.token()) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("cannot connect");
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~HttpConnection() { ::close(fd_); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Sends a request and returns the body; anything but a 2xx ends the benchmark.
  std::string ask(const std::string& method, const std::string& path, const std::string& body) {
    std::string head = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token_ + "\r\n";
    if (!body.empty())
      head += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    send_all(head + "\r\n" + body);
    return receive();
  }

 private:
  void send_all(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) give_up("the connection broke");
      sent += static_cast<std::size_t>(count);
    }
  }
  std::string receive() {
    std::size_t end = std::string::npos;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) fill();
    const std::string head = buffer_.substr(0, end);
    if (!head.starts_with("HTTP/1.1 2")) give_up("the server answered: " + buffer_.substr(0, 400));
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) give_up("no Content-Length in " + head);
    const auto length = static_cast<std::size_t>(std::stoul(head.substr(at + 16)));
    while (buffer_.size() < end + 4 + length) fill();
    std::string body = buffer_.substr(end + 4, length);
    buffer_.erase(0, end + 4 + length);
    return body;
  }
  void fill() {
    char bytes[16384];
    const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) give_up("the connection broke");
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }

  int fd_ = -1;
  std::string token_;
  std::string buffer_;
};

ClusterConfig bench_config() {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  for (int i = 0; i < kQueues; ++i) {
    QueueConfig queue;
    queue.path = "q" + std::to_string(i);
    queue.guaranteed.gpu_milli = 8000;
    config.queues.push_back(queue);
  }
  return config;
}

void write_config(const fs::path& path) {
  std::ofstream file(path);
  file << "cluster: bench\nqueues:\n";
  for (int i = 0; i < kQueues; ++i) file << "  q" << i << ": {guaranteed: {gpus: 8}}\n";
}

std::string job_body(int number) {
  return R"({"name":"job-)" + std::to_string(number) + R"(","queue":"q)" + std::to_string(number % kQueues) +
         R"(","tasks":2,"gpus":4,"cpus":8,"memory":"64GiB","launch":"per-gpu","command":["python3","train.py","--lr","0.001"]})";
}

boost::json::object log_counters(HttpConnection& connection) {
  const boost::json::value cluster = boost::json::parse(connection.ask("GET", "/v1/cluster", ""));
  return cluster.as_object().at("log").as_object();
}

void measure_submits(const std::string& berth, const fs::path& directory, int per_client, boost::json::object& out) {
  write_config(directory / "cluster.yaml");
  const ServerProcess server(berth, directory / "submits", (directory / "cluster.yaml").string(), 2);
  HttpConnection observer(server);
  const auto before = log_counters(observer);
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      HttpConnection connection(server);
      for (int i = 0; i < per_client; ++i) connection.ask("POST", "/v1/jobs", job_body(c * per_client + i));
    });
  }
  for (std::thread& client : clients) client.join();
  const double took = seconds_since(begin);
  const auto after = log_counters(observer);
  const double submits = static_cast<double>(kClients) * per_client;
  out["durable_submits_per_s"] = submits / took;
  out["fsyncs_per_submit"] = static_cast<double>(after.at("fsyncs").to_number<std::int64_t>() -
                                                 before.at("fsyncs").to_number<std::int64_t>()) /
                             submits;
  out["submits"] = submits;
}

// A log with so many live jobs, written as the loop would write it, without checkpoint.
void fill_log(const fs::path& data) {
  auto log = store::SqliteLog::open(data);
  if (!log) give_up(log.error().message);
  const std::uint64_t epoch = (*log)->take_epoch().value();
  state::State state;
  control::IterationMemory memory;
  memory.skip_cycle = true;
  const auto no_cycle = [](state::State&, Timestamp) { return Plan(); };
  const auto iteration = [&](const std::vector<Command>& commands) {
    const control::Iteration done = control::run_iteration(state, Timestamp{1'000'000}, commands, memory, no_cycle);
    std::vector<store::Record> records;
    for (const EventRecord& event : done.records) records.push_back(store::to_record(event, epoch));
    if (auto appended = (*log)->append(epoch, records.front().seq, records); !appended)
      give_up(appended.error().message);
  };
  iteration({ApplyConfig{bench_config(), "bench"}});
  for (int i = 0; i < kLiveJobs;) {
    std::vector<Command> commands;
    for (int k = 0; k < 1000; ++k, ++i) {
      JobSpec spec;
      spec.name = "job-" + std::to_string(i);
      spec.queue = "q" + std::to_string(i % kQueues);
      spec.user = "user-" + std::to_string(i % 200);
      TaskGroup group;
      group.count = 1 + i % 8;
      group.request = {8000, 65'536, 4, 1000, {}, {}};
      group.command = {"python3", "train.py", "--lr", "0.001"};
      group.launch = Launch::kPerGpu;
      spec.groups.push_back(group);
      commands.emplace_back(SubmitJob{spec, ""});
    }
    iteration(commands);
  }
}

std::int64_t bytes_below(const fs::path& directory) {
  std::int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

void measure_restart(const std::string& berth, const fs::path& directory, boost::json::object& out) {
  std::int64_t empty = 0;
  {
    const ServerProcess server(berth, directory / "empty", (directory / "cluster.yaml").string(), 0);
    empty = server.resident_bytes();
  }
  fill_log(directory / "restart");
  out["log_bytes_per_job"] = static_cast<double>(bytes_below(directory / "restart")) / kLiveJobs;
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    const ServerProcess server(berth, directory / "restart", "", 0);
    times.push_back(server.ready_after_s());
    HttpConnection connection(server);
    const boost::json::value cluster = boost::json::parse(connection.ask("GET", "/v1/cluster", ""));
    if (cluster.as_object().at("jobs_pending").to_number<std::int64_t>() != kLiveJobs)
      give_up("the server does not have all jobs");
    out["memory_bytes_per_job"] = static_cast<double>(server.resident_bytes() - empty) / kLiveJobs;
  }
  std::sort(times.begin(), times.end());
  out["restart_100k_s"] = times[1];
}

// The simulation's rate, measured by the program beside this one.
void measure_simulation(const fs::path& program, boost::json::object& out) {
  FILE* pipe = ::popen((program.string() + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) give_up("cannot start " + program.string());
  std::string text;
  char bytes[4096];
  for (std::size_t count = 0; (count = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;) text.append(bytes, count);
  if (::pclose(pipe) != 0) give_up(program.string() + " failed");
  const boost::json::value measured = boost::json::parse(text);
  for (const auto& [key, value] : measured.as_object()) out[key] = value;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  using namespace berth;
  const fs::path self = fs::canonical("/proc/self/exe");
  const std::string berth = (self.parent_path().parent_path() / "berth").string();
  const int per_client = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::string pattern = (fs::temp_directory_path() / "berth-bench-XXXXXX").string();
  const fs::path directory = ::mkdtemp(pattern.data());
  boost::json::object out;
  measure_submits(berth, directory, per_client, out);
  measure_restart(berth, directory, out);
  measure_simulation(self.parent_path() / "bench_control_sim", out);
  fs::remove_all(directory);
  std::cout << boost::json::serialize(out) << "\n";
}
