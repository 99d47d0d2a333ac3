#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {

Result<int> run(const MoveOptions& options, Session& session) {
  const auto path = job_path(options.id, "/move");
  if (!path) return path.error();
  boost::json::object body;
  for (const std::string& name : options.off) {
    if (name.empty()) return invalid("--off: a node's name is missing; give names, such as n1,n2");
  }
  if (!options.off.empty()) body["off"] = boost::json::array(options.off.begin(), options.off.end());
  if (options.lose_work) body["lose_work"] = true;
  const auto answer = answer_of(session.server.post(*path, boost::json::serialize(body)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    return "job " + options.id + (is_true(*answer, "unchanged") ? " is moving to " : " moves to ") +
           printable(joined(at(*answer, "moves_to"), ", ")) + (is_true(*answer, "unchanged") ? " already" : "") +
           ": it leaves by " + clock_text(show(*answer, "deadline")) + " and starts there when it has left\n";
  });
  return kOk;
}

}  // namespace berth::cli
