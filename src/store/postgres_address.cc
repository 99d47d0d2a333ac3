#include "store/postgres_address.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

namespace berth::store {

namespace {

constexpr std::array<std::string_view, 2> kSchemes{"postgresql://", "postgres://"};

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

class Parameters {
 public:
  explicit Parameters(std::vector<std::pair<std::string, std::string>>& all) : all_(all) {}
  std::string get(std::string_view name) const {
    for (const auto& [key, value] : all_) {
      if (key == name) return value;
    }
    return {};
  }
  void set(const std::string& name, const std::string& value) { all_.emplace_back(name, value); }
  void set_if_absent(const std::string& name, const std::string& value) {
    if (get(name).empty()) set(name, value);
  }

 private:
  std::vector<std::pair<std::string, std::string>>& all_;
};

// An empty host is the Unix socket.
bool stays_on_this_machine(const std::string& host) {
  return host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

// --store has one, and so have verify and store copy.
constexpr const char* kOfTheAddress = "the address of PostgreSQL: ";

constexpr const char* kWhereSecretsGo =
    "a secret in an address is seen by others, in lists of processes for one. Put the password into a password file of "
    "mode 0600 (lines of HOST:PORT:DATABASE:USER:PASSWORD), and name it by passfile=FILE in the address or by "
    "PGPASSFILE";

// With its percent signs undone, also where libpq would refuse one of them.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ptr == &text[i + 1] + 2;
    plain += is_escape ? static_cast<char>(byte) : text[i];
    i += is_escape ? 2 : 0;
  }
  return plain;
}

// Looked for before libpq parses the text, since its errors repeat parts of it.
bool has_password(std::string_view text) {
  std::string_view rest = text.substr(text.find("://") + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const std::size_t at = rest.rfind('@');
  if (authority.rfind('@') != std::string_view::npos) {
    if (authority.substr(0, authority.rfind('@')).find(':') != std::string_view::npos) return true;
  } else if (at != std::string_view::npos && rest.substr(0, at).find(':') < at && rest.find('?') > at) {
    return true;  // a password with a slash in it, say
  }
  return unescaped(text).find("password=") != std::string_view::npos;
}

// libpq takes from the environment what an address leaves out, and so might go to a server of which none of the rules
// here have heard.
Result<void> check_environment(const Parameters& parameters) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kElsewhere{
      std::pair{"PGHOST", "host"}, std::pair{"PGHOSTADDR", "hostaddr"}, std::pair{"PGSERVICE", "service"}};
  for (const auto& [variable, name] : kElsewhere) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0' || !parameters.get(name).empty()) continue;
    return invalid(
        fmt::format("{}{} is set in the environment, and would say which server it is; unset it, and name the "
                    "server in the address",
                    kOfTheAddress, variable));
  }
  return {};
}

Result<void> check_connect_timeout(const Parameters& parameters) {
  const std::string text = parameters.get("connect_timeout");
  if (text.empty()) return {};
  int seconds = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (end.ec == std::errc() && end.ptr == text.data() + text.size() && seconds >= 1) return {};
  return invalid(
      fmt::format("{}connect_timeout={}: without an end, a start would wait for ever; give seconds, from 1 (it is "
                  "5 where it is left out)",
                  kOfTheAddress, text));
}

Result<void> check_tls(const std::vector<std::string>& hosts, Parameters& parameters) {
  const auto away =
      std::find_if(hosts.begin(), hosts.end(), [](const auto& host) { return !stays_on_this_machine(host); });
  if (away == hosts.end()) return {};
  const std::string mode = parameters.get("sslmode");
  if (mode.empty()) {
    parameters.set("sslmode", "verify-full");
    return {};
  }
  if (mode == "verify-full" || mode == "verify-ca") return {};
  return invalid(
      fmt::format("{}{} is another machine, and with sslmode={} another one could take its place. Take "
                  "sslmode=verify-full (which is the default), with sslrootcert=FILE of the authority",
                  kOfTheAddress, *away, mode));
}

Result<void> check_target(PostgresUse use, Parameters& parameters) {
  const std::string target = parameters.get("target_session_attrs");
  if (target.empty()) {
    parameters.set("target_session_attrs", "read-write");
    return {};
  }
  if (use == PostgresUse::kRead || target == "read-write" || target == "primary") return {};
  return invalid(
      fmt::format("{}target_session_attrs={}: a server writes its log, so only read-write is possible; leave it out",
                  kOfTheAddress, target));
}

std::string shown_address(const std::vector<std::string>& hosts, const Parameters& parameters) {
  const std::vector<std::string> ports = parts_of(parameters.get("port"));
  std::string text = "postgresql://";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& port = ports.size() == 1 ? ports[0] : i < ports.size() ? ports[i] : "";
    text += fmt::format("{}{}{}{}", i == 0 ? "" : ",", hosts[i], port.empty() ? "" : ":", port);
  }
  return text + "/" + parameters.get("dbname");
}

}  // namespace

bool is_postgres_address(std::string_view text) {
  return std::any_of(kSchemes.begin(), kSchemes.end(),
                     [&](std::string_view scheme) { return text.starts_with(scheme); });
}

Result<PostgresAddress> parse_postgres_address(const std::string& text, PostgresUse use) {
  if (!is_postgres_address(text))
    return invalid("a log is on postgresql://USER@HOST/DATABASE; without --store it is in the data directory");
  if (has_password(text)) return invalid(std::string(kOfTheAddress) + kWhereSecretsGo);
  char* why = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(text.c_str(), &why),
                                                                             &PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> message(why, &PQfreemem);
  if (options == nullptr) {
    std::string said = message == nullptr ? "not an address of libpq" : message.get();
    while (!said.empty() && said.back() == '\n') said.pop_back();
    return invalid(kOfTheAddress + said);
  }
  PostgresAddress address;
  Parameters parameters(address.parameters);
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr && *option->val != '\0') parameters.set(option->keyword, option->val);
  }
  for (const char* name : {"replication", "service"}) {
    if (!parameters.get(name).empty())
      return invalid(
          fmt::format("{}{}= is not taken; name the hosts and the database in the address", kOfTheAddress, name));
  }
  if (!parameters.get("password").empty() || !parameters.get("sslpassword").empty())
    return invalid(std::string(kOfTheAddress) + kWhereSecretsGo);
  if (auto ok = check_environment(parameters); !ok) return ok.error();
  if (auto ok = check_connect_timeout(parameters); !ok) return ok.error();
  if (parameters.get("dbname").empty())
    return invalid(std::string(kOfTheAddress) + "name the database as well: postgresql://USER@HOST/DATABASE");
  const std::vector<std::string> hosts =
      parts_of(parameters.get("host").empty() ? parameters.get("hostaddr") : parameters.get("host"));
  address.servers = hosts.size();
  std::vector<std::string> connected_to = hosts;
  for (std::string& one : parts_of(parameters.get("hostaddr"))) connected_to.push_back(std::move(one));
  if (auto ok = check_tls(connected_to, parameters); !ok) return ok.error();
  if (auto ok = check_target(use, parameters); !ok) return ok.error();
  address.shown = shown_address(hosts, parameters);
  parameters.set_if_absent("application_name", "berth");
  parameters.set_if_absent("connect_timeout", "5");
  parameters.set_if_absent("tcp_user_timeout", "5000");
  parameters.set_if_absent("keepalives_idle", "5");
  parameters.set_if_absent("keepalives_interval", "2");
  parameters.set_if_absent("keepalives_count", "3");
  parameters.set("client_encoding", "UTF8");
  return address;
}

}  // namespace berth::store
